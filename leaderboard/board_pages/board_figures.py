"""Draws the figures of the leaderboard, under the board's filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.http import HttpRequest

from leaderboard.delivery.pages import Crumb, Table, canonical_query
from leaderboard.figures import claimed_figures
from leaderboard.figures.charts import boards as charts
from leaderboard.figures.charts import curves
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.figure_rows import (
    MOST_BARS,
    MOST_BOXES,
    MOST_CURVES,
    best_of,
    chances_of,
    drawn_models,
    fast_p_curves,
    first,
    mode_counts,
    named,
    spreads_of,
    utilisations_of,
)
from leaderboard.figures.findings import (
    chances_found,
    endings_found,
    fast_found,
    medians_found,
    nearest_found,
)
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, drawn_from, figure, framed
from leaderboard.figures.tables import (
    category_table,
    chance_table,
    curve_table,
    mode_table,
    spread_table,
)
from leaderboard.kit.links import url, with_query
from leaderboard.kit.visible import visible
from leaderboard.read_model.board_query import BoardQuery, board_query
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.filters import BOARD_PARAMETERS
from leaderboard.read_model.published_claims import Claim

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
    found = fast_p_curves(entries, claims, query.scope.scored)
    spec = curves.fast_p_curves(found, query.p, drawn_models(entries))
    made = drawn(request, query, spec, curve_table(found))
    return replace(
        made, says=curves_say(claims), title=fast_found(fast_p.title, entries, claims, query.p)
    )


@figure(
    "pass-k",
    "What more samples bring",
    "Solid: a correct kernel is among k. Dashed: one over p× as fast is.",
    *BOARD_PARAMETERS,
)
def chances(request: HttpRequest) -> Drawn:
    query = board_query(request)
    claims = query.claims()
    entries = query.judged()
    found = chances_of(entries, claims, query.scope.scored, query.p)
    spec = curves.chances(found, query.p, drawn_models(entries))
    made = drawn(request, query, spec, chance_table(found))
    title = chances_found(chances.title, entries, claims)
    return replace(made, says=chances_say(query.p, claims), title=title)


@figure(
    "spreads",
    "How much faster",
    "The fastest correct kernel of every problem solved; left of 1 the reference is faster.",
    *BOARD_PARAMETERS,
    tall=True,
)
def spreads(request: HttpRequest) -> Drawn:
    query = board_query(request)
    entries = query.judged()
    found = spreads_of(entries)
    spec = charts.spreads(found, drawn_models(entries))
    made = drawn(request, query, spec, spread_table(found))
    return replace(made, title=medians_found(spreads.title, entries))


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
    made = drawn(request, query, spec, category_table(found, titles))
    return replace(made, title=nearest_found(utilisations.title, best_of(entries, MOST_CURVES)))


@figure(
    "failure-modes",
    "How kernels fail",
    "Share of kernels judged here by outcome; a published row counts first attempts.",
    *BOARD_PARAMETERS,
    tall=True,
)
def failure_modes(request: HttpRequest) -> Drawn:
    query = board_query(request)
    entries = query.judged()
    counts = mode_counts(entries, query.claims())
    made = drawn(request, query, charts.failure_modes(counts), mode_table(counts))
    return replace(made, title=modes_found(best_of(entries, MOST_BARS)))


def modes_found(models: Sequence[BoardRow]) -> str:
    """Return the title of that figure, for the rows judged here that it shows."""
    return endings_found(failure_modes.title, (entry.modes for entry in models))


def drawn(request: HttpRequest, query: BoardQuery, spec: Spec, table: Table) -> Drawn:
    """Return a figure of a board with its data, under the filters of the address."""
    page = with_query(url("board"), canonical_query(request, BOARD_PARAMETERS))
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
    return fast_p.says + (claimed_figures.READ_OFF if claimed_figures.curves(claims) else "")


def chances_say(p: float, claims: Sequence[Claim]) -> str:
    is_published = bool(claimed_figures.chances(claims, p))
    return chances.says.replace("p×", f"{p:g}×") + (DOTTED if is_published else "")


def board_figures(
    query: BoardQuery, ours: Sequence[BoardRow], claims: Sequence[Claim], address: str
) -> list[dict[str, object]]:
    """Return the frames of all figures that have something to show; `address` is the query
    string."""
    models = best_of(ours, MOST_BARS)
    made = []
    timed = [entry for entry in models if entry.score.is_timed]
    if timed or claimed_figures.curves(claims):
        title = fast_found(fast_p.title, ours, claims, query.p)
        made.append(framed(fast_p, address, title=title, says=curves_say(claims)))
    more = any(entry.score.k > 1 for entry in models[:MOST_CURVES])
    if more or claimed_figures.chances(claims, query.p):
        title = chances_found(chances.title, ours, claims)
        made.append(framed(chances, address, title=title, says=chances_say(query.p, claims)))
    if any(entry.score.correct >= LEAST_DRAWN for entry in timed[:MOST_BOXES]):
        made.append(framed(spreads, address, title=medians_found(spreads.title, ours)))
    if any(entry.numbers.get("utilisation") is not None for entry in models[:MOST_CURVES]):
        title = nearest_found(utilisations.title, models[:MOST_CURVES])
        made.append(framed(utilisations, address, title=title))
    if any(entry.modes for entry in models) or claimed_figures.mode_counts(claims):
        made.append(framed(failure_modes, address, title=modes_found(models)))
    return made


def too_few(entries: Sequence[BoardRow]) -> list[str]:
    """Say in words of whom too little was timed to be drawn."""
    few = [
        f"{visible(name)} solved {entry.score.correct}"
        for entry, name in named(first(entries, MOST_BOXES))
        if entry.score.is_timed and 0 < entry.score.correct < LEAST_DRAWN
    ]
    return [f"{drawn_from(spreads, 'problems')}: {', '.join(few)}."] if few else []
