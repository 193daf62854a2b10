"""Draws the figures of the leaderboard, under the board's filters."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from django.http import HttpRequest

from leaderboard.board_pages import claimed_figures
from leaderboard.charts import boards as charts
from leaderboard.charts.boards import ByCategory, Chances, Curve, ModeCounts, Spread
from leaderboard.charts.drawing import Spec
from leaderboard.delivery.pages import Crumb, Table, canonical_query
from leaderboard.figures.frame import Drawn, figure, framed
from leaderboard.figures.tables import (
    category_table,
    chance_table,
    curve_table,
    mode_table,
    spread_table,
)
from leaderboard.kit.links import url
from leaderboard.metrics import scores
from leaderboard.read_model import boards
from leaderboard.read_model.board_query import BoardQuery, board_query
from leaderboard.read_model.boards import Entry
from leaderboard.read_model.filters import BOARD_PARAMETERS
from leaderboard.read_model.published_claims import Claim

CURVE_POINTS = tuple(step / 10 for step in range(31))
# The palette has seven colours, and a colour stays with its model in every figure of the page.
MOST_CURVES, MOST_BOXES, MOST_BARS = 5, 7, 12
READ_OFF = " Dotted: read off the plot that its authors published, not from their counts."
DOTTED = " Dotted: published, open points where fast."


@figure(
    "fast-p",
    "How many kernels are how fast",
    "Share of all problems solved correctly and more than p times as fast.",
    *BOARD_PARAMETERS,
)
def fast_p(request: HttpRequest) -> Drawn:
    query = board_query(request)
    claims = query.claims()
    entries = query.judged()
    curves = fast_p_curves(entries, claims, query.scope.scored)
    spec = charts.fast_p_curves(curves, query.p, drawn_models(entries, claims))
    made = drawn(request, query, spec, curve_table(curves))
    return replace(made, says=curves_say(claims))


@figure(
    "pass-k",
    "What more samples bring",
    "Solid: a right kernel is among k. Dashed: one over p× as fast is.",
    *BOARD_PARAMETERS,
)
def chances(request: HttpRequest) -> Drawn:
    query = board_query(request)
    claims = query.claims()
    entries = query.judged()
    found = chances_of(entries, claims, query.scope.scored, query.p)
    spec = charts.chances(found, query.p, drawn_models(entries, claims))
    made = drawn(request, query, spec, chance_table(found))
    return replace(made, says=chances_say(query.p, claims))


@figure(
    "spreads",
    "How much faster",
    "The fastest right kernel of every problem solved; left of 1 the reference is faster.",
    *BOARD_PARAMETERS,
    tall=True,
)
def spreads(request: HttpRequest) -> Drawn:
    query = board_query(request)
    entries = query.judged()
    found = spreads_of(entries)
    spec = charts.spreads(found, drawn_models(entries))
    return drawn(request, query, spec, spread_table(found))


@figure(
    "utilisations",
    "How near to the hardware's limit",
    "Median over a category's solved problems of the roofline's time over the kernel's.",
    *BOARD_PARAMETERS,
    tall=True,
)
def utilisations(request: HttpRequest) -> Drawn:
    query = board_query(request)
    entries = query.judged()
    found, titles = utilisations_of(entries, query.scope.titles)
    spec = charts.utilisations(found, titles, drawn_models(entries))
    return drawn(request, query, spec, category_table(found, titles))


@figure(
    "failure-modes",
    "How kernels fail",
    "Share of kernels by outcome; a published row counts first attempts.",
    *BOARD_PARAMETERS,
    tall=True,
)
def failure_modes(request: HttpRequest) -> Drawn:
    query = board_query(request)
    counts = mode_counts(query.judged(), query.claims())
    return drawn(request, query, charts.failure_modes(counts), mode_table(counts))


def drawn(request: HttpRequest, query: BoardQuery, spec: Spec, table: Table) -> Drawn:
    """Return a figure of a board with its data, under the filters of the address."""
    address = canonical_query(request, BOARD_PARAMETERS)
    page = url("board") + (f"?{address}" if address else "")
    narrowed = [
        f"{one.label}: {one.text}"
        for one in query.controls
        if one.name in query.chosen and one.is_set
    ]
    where = [str(query.setting)] if query.setting else []
    return Drawn(
        spec=spec,
        table=table,
        crumbs=(Crumb(text="Leaderboard", url=page),),
        under=" · ".join([*narrowed, *where]),
    )


def curves_say(claims: Sequence[Claim]) -> str:
    return fast_p.says + (READ_OFF if claimed_figures.curves(claims) else "")


def chances_say(p: float, claims: Sequence[Claim]) -> str:
    is_published = bool(claimed_figures.chances(claims, p))
    return chances.says.replace("p×", f"{p:g}×") + (DOTTED if is_published else "")


def board_figures(
    query: BoardQuery, ours: Sequence[Entry], claims: Sequence[Claim], address: str
) -> list[dict[str, object]]:
    """Return the frames of all figures that have something to show; `address` is the query
    string."""
    models = best_of(ours, MOST_BARS)
    made = []
    timed = [entry for entry in models if entry.score.is_timed]
    if timed or claimed_figures.curves(claims):
        made.append(framed(fast_p, address, says=curves_say(claims)))
    more = any(entry.score.k > 1 for entry in models[:MOST_CURVES])
    if more or claimed_figures.chances(claims, query.p):
        made.append(framed(chances, address, says=chances_say(query.p, claims)))
    if any(entry.score.correct for entry in timed[:MOST_BOXES]):
        made.append(framed(spreads, address))
    if any(entry.utilisation is not None for entry in models[:MOST_CURVES]):
        made.append(framed(utilisations, address))
    if any(entry.modes for entry in models) or claimed_figures.mode_counts(claims):
        made.append(framed(failure_modes, address))
    return made


def best_of(entries: Iterable[Entry], most: int) -> list[Entry]:
    """Return at most `most` entries, the best by their headline; details of others need not be
    read."""
    return boards.alone(_first(entries, most))


def _first(entries: Iterable[Entry], most: int) -> list[Entry]:
    models = [entry for entry in entries if not entry.baseline]
    return scores.in_order(models, lambda entry: entry.headline)[:most]


def drawn_models(entries: Iterable[Entry], claims: Iterable[Claim] = ()) -> list[str]:
    """Return the models of all figures of a page, in the order in which they choose colours: those
    that were only claimed come last, so figures without claims need not know them."""
    ours = {entry.model for entry in _first(entries, MOST_BOXES)}
    return [*sorted(ours), *sorted({claim.model for claim in claims} - ours)]


def named(entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
    """Return each entry with a name that no other has."""
    names = [f"{entry.model} ({entry.harness})" for entry in entries]
    numbers = [entry.submission for entry in entries]
    return list(zip(entries, distinguishable(names, numbers), strict=True))


def distinguishable(names: Sequence[str], submissions: Sequence[int | None]) -> list[str]:
    """Return the names, where several are `Model (human)` with the number of the submission in
    them."""
    times = Counter(names)
    return [
        name if times[name] == 1 or number is None else f"{name[:-1]}, submission {number})"
        for name, number in zip(names, submissions, strict=True)
    ]


def fast_p_curves(entries: Sequence[Entry], claims: Sequence[Claim], scored: int) -> list[Curve]:
    """Return curves of the best entries, then the published ones (of all problems, so not for one
    category)."""
    ours = [
        Curve(
            model=entry.model,
            name=name,
            thresholds=CURVE_POINTS,
            shares=tuple(scores.fast_curve(entry.results, scored, CURVE_POINTS)),
        )
        for entry, name in named(best_of(entries, MOST_CURVES))
        if entry.score.is_timed
    ]
    return ours + claimed_figures.curves(claims)


def chances_of(
    entries: Sequence[Entry], claims: Sequence[Claim], scored: int, p: float
) -> list[Chances]:
    """Return chances of the best rows, then published ones; none where nobody drew a second
    sample."""
    best = best_of(entries, MOST_CURVES)
    published = claimed_figures.chances(claims, p)
    if max((entry.score.k for entry in best), default=1) < 2 and not published:
        return []
    made = []
    for entry, name in named(best):
        ks = tuple(range(1, entry.score.k + 1))
        passing = tuple(scores.share_passing(entry.results, scored, k) for k in ks)
        fast = tuple(
            scores.share_fast(entry.results, scored, k, p) if entry.score.is_timed else None
            for k in ks
        )
        own = Chances(model=entry.model, name=name, samples=ks, passing=passing, fast=fast)
        made.append(own)
    return made + published


def spreads_of(entries: Sequence[Entry]) -> list[Spread]:
    made = []
    for entry, name in named(best_of(entries, MOST_BOXES)):
        solved = [result for result in entry.results if result.speedups]
        names = tuple(f"problem {result.problem}" for result in solved)
        best = tuple(max(result.speedups) for result in solved)
        made.append(Spread(model=entry.model, name=name, problems=names, speedups=best))
    return made if any(spread.speedups for spread in made) else []


def utilisations_of(
    entries: Sequence[Entry], titles: dict[str, str]
) -> tuple[list[ByCategory], list[str]]:
    """Return rows of utilisation (shares of the bound), and the titles of the categories in which
    some row has a number."""
    tables = [(*one, by_category(one[0])) for one in named(best_of(entries, MOST_CURVES))]
    known = [slug for slug in titles if any(slug in table for _, _, table in tables)]
    rows = [
        ByCategory(
            model=entry.model,
            name=name,
            values=tuple(table.get(slug) for slug in known),
        )
        for entry, name, table in tables
    ]
    return (rows if known else []), [titles[slug] for slug in known]


def by_category(entry: Entry) -> dict[str, float]:
    """Return the median utilisation of the problems solved, by category; categories without one are
    left out."""
    groups: dict[str, list[float]] = {}
    for cell in entry.cells:
        if cell.correct and cell.utilisation is not None:
            groups.setdefault(cell.category, []).append(cell.utilisation)
    return {category: statistics.median(values) for category, values in groups.items()}


def mode_counts(entries: Sequence[Entry], claims: Sequence[Claim]) -> list[ModeCounts]:
    """Return the failures of the best rows, then those published of all problems."""
    ours = [
        ModeCounts(name=name, counts=entry.modes)
        for entry, name in named(best_of(entries, MOST_BARS))
        if entry.modes
    ]
    return ours + claimed_figures.mode_counts(claims)
