"""Figures of the leaderboard: fast_p curves and failure modes, under the board's filters."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest

from leaderboard import scores
from leaderboard.boards import Entry
from leaderboard.charts import boards as charts
from leaderboard.charts.boards import Curve, ModeCounts
from leaderboard.filters import BOARD_PARAMETERS, board_query
from leaderboard.models import PublishedResult
from leaderboard.pages import Page, Table, public_page
from leaderboard.scores import FAILURE_MODES
from leaderboard.views.figures.frame import figure, figure_page

CURVE_POINTS = tuple(step / 10 for step in range(31))
MOST_CURVES = 5


@public_page(*BOARD_PARAMETERS)
def fast_p(request: HttpRequest) -> Page:
    query = board_query(request)
    curves = fast_p_curves(query.judged(), query.claims(), query.scope.scored)
    return figure_page(charts.fast_p_curves(curves), curve_table(curves))


@public_page(*BOARD_PARAMETERS)
def failure_modes(request: HttpRequest) -> Page:
    query = board_query(request)
    counts = mode_counts(query.judged(), query.claims())
    return figure_page(charts.failure_modes(counts), mode_table(counts))


def board_figures(
    curves: Sequence[Curve], counts: Sequence[ModeCounts], address: str
) -> list[dict[str, object]]:
    """The frames of both, as far as there is something to show; `address` is the query string."""
    tail = f"?{address}" if address else ""
    made = []
    if curves:
        title = "How many kernels are how fast"
        says = "Share of all problems solved correctly and more than p times as fast."
        made.append(figure(f"fast-p{tail}", title, says, table=curve_table(curves)))
    if counts:
        title = "How kernels fail"
        says = "Share of kernels by outcome; a published row counts first attempts."
        table = mode_table(counts)
        made.append(figure(f"failure-modes{tail}", title, says, table=table, tall=True))
    return made


def fast_p_curves(
    entries: Sequence[Entry], claims: Sequence[PublishedResult], scored: int
) -> list[Curve]:
    """The best entries, then the published curves (of all problems, so not for one category)."""
    best = scores.in_order(entries, lambda entry: entry.score.fast_at_1)[:MOST_CURVES]
    ours = [
        Curve(
            model=entry.model,
            name=f"{entry.model} ({entry.harness})",
            thresholds=CURVE_POINTS,
            shares=tuple(scores.fast_curve(entry.results, scored, CURVE_POINTS)),
        )
        for entry in best
    ]
    return ours + _published_curves(claims)


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
    ours = [
        ModeCounts(name=f"{entry.model} ({entry.harness})", counts=entry.modes)
        for entry in entries
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
