"""Draws the speedups over size that a publication shows of single problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.http import Http404, HttpRequest

from leaderboard.delivery.cells import ratio_text
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.figures.charts import speedups as charts
from leaderboard.figures.charts.boards import styles
from leaderboard.figures.charts.speedups import SpeedupLine
from leaderboard.figures.findings import most_found
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, figure, framed
from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.links import url
from leaderboard.models import Publication
from leaderboard.problem_pages.problem_figures import problem_asked
from leaderboard.read_model.published_claims import SIZE_CURVES

SAYS = "Published, not run here: read off the plot of its authors."


@figure("published-speedups", "Published speedup against size", SAYS, "problem")
def published_speedups(request: HttpRequest) -> Drawn:
    found = problem_asked(request)
    told = Publication.objects.order_by("pk").values_list("payload", flat=True).first() or {}
    curves = list(curves_of(told.get(SIZE_CURVES), found.number))
    if not curves:
        raise Http404
    looks = styles([curve["model"] for curve in curves], sorted(told.get("models", ())))
    lines = [
        SpeedupLine(
            name=f"{curve['model']} (published)",
            points=_points(curve),
            published=True,
            colour=look.colour,
        )
        for curve, look in zip(curves, looks, strict=True)
    ]
    sizes = sorted({x for line in lines for x, _ in line.points})
    ticks = [(x, f"{x:g}") for x in sizes]
    page = url("problem", found.number, found.slug)
    return Drawn(
        spec=charts.speedup_lines(lines, str(curves[0].get("axis", "size")), ticks),
        table=Table(
            columns=("Speedup × of", *(text for _, text in ticks)),
            rows=[[line.name, *(dict(line.points).get(x) for x in sizes)] for line in lines],
        ),
        crumbs=(Crumb(text="Problems", url=url("problems")), Crumb(text=str(found), url=page)),
        title=title_of(curves),
        says=says_of(curves),
    )


def frames_of(number: int, told: Any) -> list[dict[str, object]]:
    """Return the frame of the figure where a publication shows such a curve."""
    curves = list(curves_of(told, number))
    address = f"problem={number}"
    if not curves:
        return []
    return [framed(published_speedups, address, title=title_of(curves), says=says_of(curves))]


def curves_of(told: Any, number: int) -> Iterator[JsonObject]:
    """Yield the curves of one problem that have enough points, and no others."""
    for one in told if isinstance(told, list) else ():
        if one.get("problem") == number and len(_points(one)) >= LEAST_DRAWN:
            yield one


def _points(curve: JsonObject) -> tuple[tuple[float, float], ...]:
    pairs = zip(curve.get("x", ()), curve.get("speedup", ()), strict=False)
    return tuple(sorted((float(x), float(y)) for x, y in pairs if x > 0 and y > 0))


def title_of(curves: Sequence[JsonObject]) -> str:
    """Return the title with the highest speedup of all curves."""
    told = [(str(curve["model"]), max(y for _, y in _points(curve))) for curve in curves]
    return most_found(published_speedups.title, told, ratio_text, "at best")


def says_of(curves: Sequence[JsonObject]) -> str:
    told = [f" {curve['model']}: {curve['setting']}." for curve in curves]
    return SAYS + "".join(told)
