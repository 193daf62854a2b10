"""Draws how the speedup at one problem changes: over sizes and ranks, and over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from leaderboard.figures.charts.drawing import (
    COLOURS,
    KERNEL_COLOUR,
    SYMBOLS,
    Spec,
    label,
    line_at,
    significant,
    speedup_axis,
)
from leaderboard.figures.charts.problems import QUIET


@dataclass(frozen=True, kw_only=True)
class SpeedupLine:
    """Holds a submission's speedup over x, which grows; `best` is that of all together, and a
    `published` one is dotted. `colour` is that of its model, where it has one."""

    name: str
    points: tuple[tuple[float, float], ...]
    best: bool = False
    published: bool = False
    colour: str = ""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Holds a kernel's speedup when it was judged, as ISO 8601."""

    at: str
    speedup: float
    says: str
    link: str


def speedup_lines(
    lines: Sequence[SpeedupLine],
    x_title: str,
    ticks: Sequence[tuple[float, str]],
    crossed: Sequence[tuple[float, str]] = (),
) -> Spec:
    """Draw speedups over x, whose values `ticks` name; log axes. The line at 1 is the reference
    with NCCL, which the best kernel crosses at each of `crossed`."""
    data = []
    for i, line in enumerate(lines):
        colour = QUIET if line.best else line.colour or COLOURS[i % (len(COLOURS) - 1)]
        style: Spec = {"color": colour, "width": 4 if line.best else 1.75}
        data.append(
            {
                "type": "scatter",
                "mode": "lines" if line.best else "lines+markers",
                "name": label(line.name),
                "x": [significant(x) for x, _ in line.points],
                "y": [significant(y) for _, y in line.points],
                "line": {**style, "dash": "dot" if line.best or line.published else "solid"},
                "marker": {"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 7},
                "hovertemplate": "%{x}: %{y}×",
            }
        )
    axis = {"tickvals": [significant(x) for x, _ in ticks], "ticktext": [t for _, t in ticks]}
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": x_title}, "type": "log", **axis},
            "yaxis": speedup_axis(y for line in lines for _, y in line.points),
            "shapes": [line_at(y=1.0), *(line_at(x=significant(x)) for x, _ in crossed)],
            "annotations": [_crossed(x, text) for x, text in crossed],
            "showlegend": True,  # else nothing says whose a single line is
            "hovermode": "closest",
        },
    }


def _crossed(x: float, text: str) -> Spec:
    """Annotate a line across. Plotly wants the logarithm here, and the value itself of a line."""
    place = {"x": significant(math.log10(x)), "y": 1, "yref": "paper", "yanchor": "bottom"}
    return {"text": f"as fast as NCCL at {text}", "showarrow": False, **place}


def over_time(every: Sequence[Moment], best: Sequence[Moment]) -> Spec:
    """Draw kernels when they were judged, and a line of the records among them."""
    data = [
        {
            "type": "scatter",
            "mode": mode,
            "name": name,
            "x": [one.at for one in moments],
            "y": [significant(one.speedup) for one in moments],
            "text": [label(one.says) for one in moments],
            "customdata": [one.link for one in moments],
            "line": {"color": colour, "width": 2, "shape": "hv"},
            "marker": {"color": colour, "symbol": symbol, "size": 8},
            "hovertemplate": "%{text}: %{y}×",
        }
        for name, moments, mode, colour, symbol in (
            ("correct kernel", every, "markers", QUIET, "circle-open"),
            ("record", best, "lines+markers", KERNEL_COLOUR, "circle"),
        )
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "judged"}, "type": "date"},
            "yaxis": speedup_axis(one.speedup for one in every),
            "shapes": [line_at(y=1.0)],
            "showlegend": True,
            "hovermode": "closest",
        },
    }


def crossings(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return each x where the line through these points, straight in logarithms, passes 1."""
    found = []
    for (x0, y0), (x1, y1) in pairwise(points):
        a, b = math.log(y0), math.log(y1)
        if a * b < 0:
            share = a / (a - b)
            found.append(math.exp(math.log(x0) + share * (math.log(x1) - math.log(x0))))
    return found
