"""Figures of the leaderboard, under the board's filters."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from django.http import HttpRequest

from leaderboard import scores
from leaderboard.boards import Entry
from leaderboard.charts import boards as charts
from leaderboard.charts.boards import ByCategory, Chances, Curve, ModeCounts, Spread
from leaderboard.failures import FAILURE_MODES
from leaderboard.filters import BOARD_PARAMETERS, BoardQuery, board_query
from leaderboard.models import PublishedResult
from leaderboard.pages import Page, Table, View, public_page
from leaderboard.views.figures.frame import figure, figure_page

CURVE_POINTS = tuple(step / 10 for step in range(31))
# The palette has seven colours, and a colour stays with its row in every figure of the page.
MOST_CURVES, MOST_BOXES, MOST_BARS = 5, 7, 12


@public_page(*BOARD_PARAMETERS)
def fast_p(request: HttpRequest) -> Page:
    query = board_query(request)
    curves = fast_p_curves(query.judged(), query.claims(), query.scope.scored)
    return figure_page(charts.fast_p_curves(curves, query.p), curve_table(curves))


@public_page(*BOARD_PARAMETERS)
def failure_modes(request: HttpRequest) -> Page:
    query = board_query(request)
    counts = mode_counts(query.judged(), query.claims())
    return figure_page(charts.failure_modes(counts), mode_table(counts))


def _judged_only(build: Callable[[BoardQuery, Sequence[Entry]], Page]) -> View:
    @public_page(*BOARD_PARAMETERS)
    def view(request: HttpRequest) -> Page:
        query = board_query(request)
        return build(query, query.judged())

    return view


@_judged_only
def chances(query: BoardQuery, entries: Sequence[Entry]) -> Page:
    found = chances_of(entries, query.scope.scored, query.p)
    return figure_page(charts.chances(found, query.p), chance_table(found))


@_judged_only
def spreads(query: BoardQuery, entries: Sequence[Entry]) -> Page:
    found = spreads_of(entries)
    return figure_page(charts.spreads(found), spread_table(found))


@_judged_only
def utilisations(query: BoardQuery, entries: Sequence[Entry]) -> Page:
    found, titles = utilisations_of(entries, query.scope.titles)
    return figure_page(charts.utilisations(found, titles), category_table(found, titles))


def board_figures(
    query: BoardQuery, ours: Sequence[Entry], claims: Sequence[PublishedResult], address: str
) -> list[dict[str, object]]:
    """The frames of all, as far as there is something to show; `address` is the query string."""
    tail = f"?{address}" if address else ""
    made = []
    if curves := fast_p_curves(ours, claims, query.scope.scored):
        title = "How many kernels are how fast"
        says = "Share of all problems solved correctly and more than p times as fast."
        made.append(figure(f"fast-p{tail}", title, says, table=curve_table(curves)))
    if found := chances_of(ours, query.scope.scored, query.p):
        title = "What more samples bring"
        says = f"Solid: a right kernel is among k. Dashed: one over {query.p:g}× as fast is."
        made.append(figure(f"pass-k{tail}", title, says, table=chance_table(found)))
    if boxes := spreads_of(ours):
        title = "How much faster"
        says = (
            "The fastest right kernel of every problem solved; left of 1 the reference is faster."
        )
        made.append(figure(f"spreads{tail}", title, says, table=spread_table(boxes), tall=True))
    rows, titles = utilisations_of(ours, query.scope.titles)
    if rows:
        title = "How near to the hardware's limit"
        says = "Median over a category's solved problems of the roofline's time over the kernel's."
        table = category_table(rows, titles)
        made.append(figure(f"utilisations{tail}", title, says, table=table, tall=True))
    if counts := mode_counts(ours, claims):
        title = "How kernels fail"
        says = "Share of kernels by outcome; a published row counts first attempts."
        table = mode_table(counts)
        made.append(figure(f"failure-modes{tail}", title, says, table=table, tall=True))
    return made


def best_of(entries: Iterable[Entry], most: int) -> list[Entry]:
    """By fast_p@1, in the order that decides colours."""
    models = [entry for entry in entries if not entry.baseline]
    return scores.in_order(models, lambda entry: entry.score.fast_at_1)[:most]


def called(entry: Entry) -> str:
    return f"{entry.model} ({entry.harness})"


def fast_p_curves(
    entries: Sequence[Entry], claims: Sequence[PublishedResult], scored: int
) -> list[Curve]:
    """The best entries, then the published curves (of all problems, so not for one category)."""
    ours = [
        Curve(
            model=entry.model,
            name=called(entry),
            thresholds=CURVE_POINTS,
            shares=tuple(scores.fast_curve(entry.results, scored, CURVE_POINTS)),
        )
        for entry in best_of(entries, MOST_CURVES)
    ]
    return ours + _published_curves(claims)


def chances_of(entries: Sequence[Entry], scored: int, p: float) -> list[Chances]:
    """Of the best rows; none where nobody drew a second sample."""
    best = best_of(entries, MOST_CURVES)
    if max((entry.score.k for entry in best), default=1) < 2:
        return []
    made = []
    for entry in best:
        samples = range(1, entry.score.k + 1)
        passing = tuple(scores.share_passing(entry.results, scored, k) for k in samples)
        fast = tuple(scores.share_fast(entry.results, scored, k, p) for k in samples)
        made.append(Chances(model=entry.model, name=called(entry), passing=passing, fast=fast))
    return made


def spreads_of(entries: Sequence[Entry]) -> list[Spread]:
    made = []
    for entry in best_of(entries, MOST_BOXES):
        solved = [result for result in entry.results if result.speedups]
        names = tuple(f"problem {result.problem}" for result in solved)
        best = tuple(max(result.speedups) for result in solved)
        made.append(Spread(model=entry.model, name=called(entry), problems=names, speedups=best))
    return made if any(spread.speedups for spread in made) else []


def utilisations_of(
    entries: Sequence[Entry], titles: dict[str, str]
) -> tuple[list[ByCategory], list[str]]:
    """Rows, and the categories in which some row has a number."""
    tables = [(entry, by_category(entry)) for entry in best_of(entries, MOST_CURVES)]
    known = [slug for slug in titles if any(slug in table for _, table in tables)]
    rows = [
        ByCategory(
            model=entry.model,
            name=called(entry),
            values=tuple(table.get(slug) for slug in known),
        )
        for entry, table in tables
    ]
    return (rows if known else []), [titles[slug] for slug in known]


def by_category(entry: Entry) -> dict[str, float]:
    """Median utilisation of the problems solved, where there is one."""
    groups: dict[str, list[float]] = {}
    for cell in entry.cells:
        if cell.correct and cell.utilisation is not None:
            groups.setdefault(cell.category, []).append(cell.utilisation)
    return {category: statistics.median(values) for category, values in groups.items()}


def _published_curves(claims: Sequence[PublishedResult]) -> list[Curve]:
    if not claims or claims[0].category is not None:
        return []
    curves = claims[0].publication.payload.get("fast_p_curve_read_off_plot", {})
    names = {claim.model.name for claim in claims}
    return [
        Curve(
            model=name,
            name=name,
            thresholds=tuple(curves["p"]),
            shares=tuple(shares),
            published=True,
        )
        for name, shares in curves.items()
        if name in names
    ]


def mode_counts(entries: Sequence[Entry], claims: Sequence[PublishedResult]) -> list[ModeCounts]:
    """Of the best rows, and of what was published of all problems."""
    ours = [
        ModeCounts(name=called(entry), counts=entry.modes)
        for entry in best_of(entries, MOST_BARS)
        if entry.modes
    ]
    if not claims or claims[0].category is not None:
        return ours
    payload = claims[0].publication.payload.get("failure_modes_zero_shot", {})
    names = {claim.model.name for claim in claims}
    return ours + [
        ModeCounts(
            name=f"{name} (published)", counts=dict(zip(payload["order"], counts, strict=True))
        )
        for name, counts in payload.items()
        if name in names
    ]


def curve_table(curves: Sequence[Curve]) -> Table:
    """Per cent of problems at every threshold that any of the curves has."""
    points = sorted({point for curve in curves for point in curve.thresholds})
    rows = []
    for curve in curves:
        at = dict(zip(curve.thresholds, curve.shares, strict=True))
        suffix = " (published)" if curve.published else ""
        shares = [at.get(point) for point in points]
        rows.append([curve.name + suffix, *(None if s is None else 100 * s for s in shares)])
    return Table(columns=("Model", *(f"p = {point:g}, %" for point in points)), rows=rows)


def mode_table(counts: Sequence[ModeCounts]) -> Table:
    rows = [[row.name, *(row.counts.get(mode, 0) for mode in FAILURE_MODES)] for row in counts]
    return Table(columns=("Model, number of kernels", *FAILURE_MODES), rows=rows)


def chance_table(found: Sequence[Chances]) -> Table:
    most = max((len(row.passing) for row in found), default=0)
    rows = []
    for row in found:
        for kind, shares in (("pass@k", row.passing), ("fast@k", row.fast)):
            known = [None if share is None else 100 * share for share in shares]
            rows.append([f"{row.name}, {kind}", *known, *[None] * (most - len(known))])
    columns = ("Model", *(f"k = {k}, %" for k in range(1, most + 1)))
    return Table(columns=columns, rows=rows)


def spread_table(found: Sequence[Spread]) -> Table:
    rows: list[list[object]] = []
    for row in found:
        ordered = sorted(row.speedups)
        many = len(ordered) > 1
        quarters = statistics.quantiles(ordered, method="inclusive") if many else ordered * 3
        ends = [ordered[0], *quarters, ordered[-1]] if ordered else [None] * 5
        rows.append([row.name, len(ordered), *ends])
    columns = (
        "Model",
        "Problems",
        "Least, ×",
        "Quartile, ×",
        "Median, ×",
        "Quartile, ×",
        "Most, ×",
    )
    return Table(columns=columns, rows=rows)


def category_table(found: Sequence[ByCategory], titles: Sequence[str]) -> Table:
    """A row for each category, in per cent."""
    rows = [
        [title, *(None if row.values[i] is None else 100 * row.values[i] for row in found)]  # type: ignore[operator]
        for i, title in enumerate(titles)
    ]
    return Table(columns=("Category, %", *(row.name for row in found)), rows=rows)
