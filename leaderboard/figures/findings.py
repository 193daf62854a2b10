"""Says in a figure's title what the figure shows. Titles are also its accessible name.

A title stays as it is where there is nothing to say. Names are others' texts.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from leaderboard.delivery import cells
from leaderboard.figures.claimed_figures import chances
from leaderboard.figures.figure_rows import MOST_BOXES, MOST_CURVES, first, named
from leaderboard.figures.frame import LEAST_DRAWN
from leaderboard.kit.visible import visible
from leaderboard.metrics.failures import CORRECT
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.published_claims import Claim

Told = Iterable[tuple[str, float | None]]


def said(title: str, finding: str) -> str:
    """Return a title with what was found, if anything was."""
    return f"{title}: {finding}" if finding else title


def first_of(told: Told) -> tuple[str, float] | None:
    """Return the name with the largest number, the first of equal ones, as it may be shown; None
    where no number is known."""
    known = [(visible(name), value) for name, value in told if value is not None]
    return max(known, key=lambda pair: pair[1], default=None)


def most_found(title: str, told: Told, text: Callable[[float], str], what: str) -> str:
    """Return the title with the name that has the largest number: `NAME WHAT, NUMBER`."""
    found = first_of(told)
    return said(title, f"{found[0]} {what}, {text(found[1])}") if found else title


def endings_found(title: str, every: Iterable[Mapping[str, int]]) -> str:
    """Return the title of a figure of failure modes with what it shows: how many of all kernels are
    correct, and how the others fail most often."""
    counts = Counter[str]()
    for modes in every:
        counts.update(modes)
    total, correct = counts.total(), counts.pop(CORRECT, 0)
    if not total:
        return title
    told = f"{correct} of {total} {'is' if correct == 1 else 'are'} correct"
    mode, most = next(iter(counts.most_common(1)), ("", 0))
    verb = "ends" if most == 1 else "end"
    return said(title, f"{told}, {most} {verb} with {mode}" if most else told)


def nearest_found(title: str, entries: Iterable[BoardRow]) -> str:
    """Return the title of a figure of utilisation with the row that is nearest to the limit."""
    told = [(one.model, one.numbers.get("utilisation")) for one in entries]
    found = first_of(told)
    if found is None:
        return title
    return said(title, f"{found[0]} reaches {cells.share_text(found[1])} in the median")


def fast_found(title: str, entries: Iterable[BoardRow], claims: Sequence[Claim], p: float) -> str:
    """Return the title of a figure of fast_p with the row that is fast most often, of those judged
    here, or else of those published."""
    drawn = named(first(entries, MOST_CURVES))
    told = [(name, one.score.fast_at_1) for one, name in drawn if one.score.is_timed]
    if not told and p == 1.0:
        told = [(one.model, one.fast_at_1 / one.problems) for one in claims if one.problems]
    if told and not any(share for _, share in told):
        return said(title, f"nobody is over {p:g}×")
    return most_found(title, told, cells.share_text, f"is over {p:g}× on most problems")


def chances_found(title: str, entries: Iterable[BoardRow], claims: Sequence[Claim]) -> str:
    """Return the title of a figure of pass@k with the row that gains most from more samples."""
    ours = [
        (name, one.score.pass_at_1, one.score.pass_at_k, one.score.k)
        for one, name in named(first(entries, MOST_CURVES))
        if one.score.k > 1
    ]
    told = ours + [
        (one.name, one.passing[0], one.passing[-1], one.samples[-1]) for one in chances(claims, 1.0)
    ]
    known = [
        (at_k - at_1, name, at_1, at_k, k)
        for name, at_1, at_k, k in told
        if at_1 is not None and at_k is not None
    ]
    if not known:
        return title
    _, name, at_1, at_k, k = max(known)
    before, after = cells.share_text(at_1), cells.share_text(at_k)
    return said(title, f"{visible(name)} solves {before} with one, {after} with {k}")


def medians_found(title: str, entries: Iterable[BoardRow]) -> str:
    """Return the title of a figure of speedups with the row of the highest median. With several
    samples a problem, of which the figure shows the fastest and the median is of their means, it is
    the row that solved most."""
    drawn = named(first(entries, MOST_BOXES))
    if any(one.score.k > 1 for one, _ in drawn):
        solved = [(name, one.score.correct) for one, name in drawn if one.score.is_timed]
        return most_found(title, solved, lambda count: f"{count:.0f} problems", "solved most")
    told = [
        (name, one.numbers.get("median_speedup"))
        for one, name in drawn
        if one.score.correct >= LEAST_DRAWN
    ]
    return most_found(title, told, cells.ratio_text, "has the highest median")


def spread_found(title: str, speedups: Sequence[float]) -> str:
    """Return the title of a figure of speedups with their median and their ends."""
    if not speedups:
        return title
    middle, least, most = (
        cells.ratio_text(one) for one in (statistics.median(speedups), min(speedups), max(speedups))
    )
    return said(title, f"{middle} in the median, {least} to {most}")
