"""Draws what submissions took against what they reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.boards import Style, styles
from leaderboard.figures.charts.drawing import Spec, label, significant
from leaderboard.figures.charts.problems import QUIET

# From such a ratio of the dearest to the cheapest on, points would lie on each other.
WIDE = 10


@dataclass(frozen=True, kw_only=True)
class Point:
    """Holds what one submission took, what it reached with it, and where its point leads."""

    model: str
    name: str
    took: float
    reached: float
    link: str = ""


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points that none reaches more than for as little, the cheapest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda one: (one.took, -one.reached)):
        if not best or point.reached > best[-1].reached:
            best.append(point)
    return best


def against(points: Sequence[Point], took: str, reached: str, order: Sequence[str] = ()) -> Spec:
    """Draw a point for each submission, and the Pareto line through those that `front` returns,
    which are named. `took` and `reached` are the axes' titles."""
    looks = styles([point.model for point in points], order)
    named = front(points)
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "nobody does more for less",
        "x": [significant(point.took) for point in named],
        "y": [significant(point.reached) for point in named],
        "line": {"color": QUIET, "width": 1.5, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
    }
    marks = {
        "type": "scatter",
        "mode": "markers+text",
        "name": "submission",
        "x": [significant(point.took) for point in points],
        "y": [significant(point.reached) for point in points],
        "text": [label(point.name) if point in named else "" for point in points],
        "hovertext": [label(point.name) for point in points],
        "textposition": "top center",
        "cliponaxis": False,
        "marker": _marker(looks),
        "customdata": [point.link for point in points],
        "hovertemplate": "%{hovertext}: %{x}, %{y}",
    }
    return {
        "data": [line, marks],
        "layout": {
            "xaxis": {"title": {"text": took}, **_scale([point.took for point in points])},
            "yaxis": {"title": {"text": reached}, "rangemode": "tozero"},
            "showlegend": False,
            "hovermode": "closest",
        },
    }


def _marker(looks: Sequence[Style]) -> Spec:
    colours, symbols = [look.colour for look in looks], [look.symbol for look in looks]
    return {"color": colours, "symbol": symbols, "size": 10}


def _scale(values: Sequence[float]) -> Spec:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return {"type": "log"} if 0 < low * WIDE < high else {"rangemode": "tozero"}
