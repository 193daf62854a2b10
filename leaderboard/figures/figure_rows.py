"""Makes of the rows of a board what its figures draw."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from leaderboard.delivery import cells
from leaderboard.figures import claimed_figures
from leaderboard.figures.charts.boards import ByCategory, ModeCounts, Spread
from leaderboard.figures.charts.curves import Chances, Curve
from leaderboard.figures.frame import LEAST_DRAWN
from leaderboard.kit.links import url
from leaderboard.metrics import scores
from leaderboard.metrics.tallies import in_order
from leaderboard.metrics.telling_apart import names_of
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow, Cell
from leaderboard.read_model.published_claims import Claim, published

CURVE_POINTS = tuple(step / 10 for step in range(31))
# The palette has seven colours, and a colour stays with its model in every figure of the page.
MOST_CURVES, MOST_BOXES, MOST_BARS = 5, 7, 12


def best_of(entries: Iterable[BoardRow], most: int) -> list[BoardRow]:
    """Return at most `most` entries, the best by their headline; details of others need not be
    read."""
    return boards.alone(first(entries, most))


def first(entries: Iterable[BoardRow], most: int) -> list[BoardRow]:
    """Return at most `most` entries of models and people, the best by their headline."""
    models = [entry for entry in entries if not entry.baseline]
    return scores.in_order(models, lambda entry: entry.headline)[:most]


def drawn_models(entries: Iterable[BoardRow]) -> list[str]:
    """Return the models in the order in which they choose colours: those of publications first, so
    that each looks the same under every filter and in every setting."""
    claimed = {claim.model for claim in published(category=None)}
    ours = {entry.model for entry in first(entries, MOST_BOXES)}
    return [*sorted(claimed), *sorted(ours - claimed)]


def named(entries: Sequence[BoardRow]) -> list[tuple[BoardRow, str]]:
    """Return each entry with a name that no other has."""
    return list(zip(entries, names_of(entries), strict=True))


def fast_p_curves(entries: Sequence[BoardRow], claims: Sequence[Claim], scored: int) -> list[Curve]:
    """Return curves of the best entries, then the published ones (of all problems, so not for one
    category)."""
    ours = [
        Curve(
            model=entry.model,
            name=name + _judged(entry),
            thresholds=CURVE_POINTS,
            shares=tuple(scores.fast_curve(entry.results, scored, CURVE_POINTS)),
            link=entry.url,
        )
        for entry, name in named(best_of(entries, MOST_CURVES))
        if entry.score.is_timed
    ]
    return ours + claimed_figures.curves(claims)


def _judged(entry: BoardRow) -> str:
    """Return of how many problems a row says something."""
    return f", {entry.score.attempted} of {entry.score.scored} judged"


def chances_of(
    entries: Sequence[BoardRow], claims: Sequence[Claim], scored: int, p: float
) -> list[Chances]:
    """Return chances of the best rows, then published ones; none where nobody drew a second
    sample."""
    best = best_of(entries, MOST_CURVES)
    claimed = claimed_figures.chances(claims, p)
    if max((entry.score.k for entry in best), default=1) < 2 and not claimed:
        return []
    made = []
    for entry, name in named(best):
        ks = tuple(range(1, entry.score.k + 1))
        passing = tuple(scores.share_passing(entry.results, scored, k) for k in ks)
        fast = tuple(
            scores.share_fast(entry.results, scored, k, p) if entry.score.is_timed else None
            for k in ks
        )
        own = Chances(
            model=entry.model, name=name + _judged(entry), samples=ks, passing=passing, fast=fast
        )
        made.append(own)
    return made + claimed


def spreads_of(entries: Sequence[BoardRow]) -> list[Spread]:
    """Return the rows that solved enough problems to be drawn."""
    made = []
    for entry, name in named(best_of(entries, MOST_BOXES)):
        solved = [cell for cell in entry.cells if cell.best_speedup is not None]
        if len(solved) >= LEAST_DRAWN:
            made.append(
                Spread(
                    model=entry.model,
                    name=name,
                    problems=tuple(map(_in_words, solved)),
                    speedups=tuple(cell.best_speedup or 0.0 for cell in solved),
                    links=tuple(url("run", cell.run) for cell in solved),
                )
            )
    return made


def _in_words(cell: Cell) -> str:
    least = "" if cell.best_low is None else f", 95 % from {cells.ratio_text(cell.best_low)}"
    used = cell.utilisation
    bound = "" if used is None else f", {cells.share_text(used)} of the bound"
    return f"problem {cell.problem}: {cells.ratio_text(cell.best_speedup)}{least}{bound}"


def utilisations_of(
    entries: Sequence[BoardRow], titles: dict[str, str]
) -> tuple[list[ByCategory], list[str]]:
    """Return rows of utilisation (shares of the bound), and the titles of the categories in which
    some row has a number."""
    tables = [(*one, by_category(one[0])) for one in named(best_of(entries, MOST_CURVES))]
    known = [slug for slug in titles if any(slug in table for _, _, table in tables)]
    nobody: tuple[float | None, int] = (None, 0)
    rows = [
        ByCategory(
            model=entry.model,
            name=name,
            values=tuple(table.get(slug, nobody)[0] for slug in known),
            counts=tuple(table.get(slug, nobody)[1] for slug in known),
            link=entry.url,
        )
        for entry, name, table in tables
    ]
    return (rows if known else []), [titles[slug] for slug in known]


def by_category(entry: BoardRow) -> dict[str, tuple[float, int]]:
    """Return the median utilisation of the problems solved, and of how many, by category;
    categories without one are left out."""
    groups: dict[str, list[float]] = {}
    for cell in entry.cells:
        if cell.correct and cell.utilisation is not None:
            groups.setdefault(cell.category, []).append(cell.utilisation)
    return {name: (statistics.median(values), len(values)) for name, values in groups.items()}


def endings_in_words(modes: Mapping[str, int]) -> str:
    """Return `12 correct, 3 deadlock` for counts by failure mode, the commonest first, of equal
    ones what came furthest."""
    told = list(in_order(modes).items())[::-1]
    told.sort(key=lambda pair: -pair[1])
    return ", ".join(f"{count} {mode}" for mode, count in told)


def mode_counts(entries: Sequence[BoardRow], claims: Sequence[Claim]) -> list[ModeCounts]:
    """Return the failures of the best rows, then those published of all problems."""
    ours = [
        ModeCounts(name=name, counts=entry.modes, link=entry.url)
        for entry, name in named(best_of(entries, MOST_BARS))
        if entry.modes
    ]
    return ours + claimed_figures.mode_counts(claims)
