"""Draws what submissions took against what they reached, of those whose harness tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from django.http import HttpRequest

from leaderboard.board_pages.board_figures import drawn
from leaderboard.delivery import cells
from leaderboard.delivery.pages import Table
from leaderboard.figures.charts import costs
from leaderboard.figures.charts.costs import Point
from leaderboard.figures.figure_rows import drawn_models, named
from leaderboard.figures.findings import said
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, Figure, drawn_from, figure, framed
from leaderboard.kit.visible import visible
from leaderboard.read_model.board_query import BoardQuery, board_query
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.filters import BOARD_PARAMETERS, count_phrase


@figure(
    "cost-fast",
    "What fast kernels cost",
    "Share of all problems that one attempt solves fast, by what an attempt cost. The line joins"
    " those that nobody beats for as little.",
    *BOARD_PARAMETERS,
)
def cost_fast(request: HttpRequest) -> Drawn:
    query = board_query(request)
    titles = ("US$ an attempt", f"% of problems, over {query.p:g}×")
    return _against(request, query, cost_fast, costs_of, titles)


@figure(
    "tokens-solved",
    "What solved problems take",
    "Problems with a correct kernel, by the output tokens of all attempts. The line joins those "
    "that nobody beats for as little.",
    *BOARD_PARAMETERS,
)
def tokens_solved(request: HttpRequest) -> Drawn:
    titles = ("output tokens", "problems solved")
    return _against(request, board_query(request), tokens_solved, tokens_of, titles)


def _against(
    request: HttpRequest,
    query: BoardQuery,
    of: Figure,
    points_of: Callable[[Sequence[BoardRow]], Sequence[Point]],
    titles: tuple[str, str],
) -> Drawn:
    entries = query.judged()
    points = points_of(entries)
    spec = costs.against(_enough(points), *titles, drawn_models(entries))
    made = drawn(request, query, spec, _table(points, titles))
    says = of.says if _enough(points) else too_few(of, points)
    return replace(made, says=says, title=_found(of, points))


def costs_of(entries: Sequence[BoardRow]) -> list[Point]:
    """Return the cost of an attempt, and fast_p@1 in per cent, of the rows that tell both."""
    return [
        Point(
            model=entry.model,
            name=name,
            took=usd / entry.made,
            reached=100 * fast,
            link=entry.url,
        )
        for entry, name in _named(entries)
        if (usd := entry.numbers.get("usd")) is not None and entry.made
        for fast in [entry.score.fast_at_1]
        if fast is not None
    ]


def tokens_of(entries: Sequence[BoardRow]) -> list[Point]:
    """Return the output tokens of all attempts, and the problems solved, of the rows that tell
    them."""
    return [
        Point(
            model=entry.model,
            name=name,
            took=tokens,
            reached=entry.score.correct,
            link=entry.url,
        )
        for entry, name in _named(entries)
        if (tokens := entry.numbers.get("output_tokens")) is not None
    ]


def _named(entries: Sequence[BoardRow]) -> list[tuple[BoardRow, str]]:
    return named([entry for entry in entries if not entry.baseline])


def _enough(points: Sequence[Point]) -> Sequence[Point]:
    return points if len(points) >= LEAST_DRAWN else ()


def too_few(of: Figure, points: Sequence[Point]) -> str:
    """Say in words why a figure is not drawn."""
    return (
        f"{drawn_from(of, 'submissions')}; here {count_phrase(len(points), 'submission')} told it."
    )


def _found(of: Figure, points: Sequence[Point]) -> str:
    """Return the title with the submission that reaches most, and what it took."""
    best = max(_enough(points), key=lambda one: one.reached, default=None)
    if best is None:
        return of.title
    name = visible(best.name)
    if of is tokens_solved:
        reached, took = f"{best.reached:.0f} problems", f"{cells.count_text(best.took)} tokens"
    else:
        reached, took = f"{best.reached:.1f} %", f"{cells.significant(best.took)} US$ an attempt"
    return said(of.title, f"{name} reaches most, {reached}, for {took}")


def _table(points: Sequence[Point], titles: tuple[str, str]) -> Table:
    best = costs.front(points)
    rows = [[one.name, one.took, one.reached, "yes" if one in best else "no"] for one in points]
    return Table(columns=("Submission", *titles, "on the line"), rows=rows)


def cost_figures(
    entries: Sequence[BoardRow], address: str
) -> tuple[list[dict[str, object]], list[str]]:
    """Return the frames of figures with enough points, and a sentence for each that has a few."""
    found = ((cost_fast, costs_of(entries)), (tokens_solved, tokens_of(entries)))
    frames = [
        framed(one, address, title=_found(one, points)) for one, points in found if _enough(points)
    ]
    few = [too_few(one, points) for one, points in found if points and not _enough(points)]
    return frames, few
