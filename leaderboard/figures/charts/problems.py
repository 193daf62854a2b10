"""Draws problems beside each other: rooflines and spreads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.drawing import (
    BASELINE_COLOUR,
    KERNEL_COLOUR,
    Spec,
    height_px,
    label,
    line_at,
    significant,
    speedup_axis,
)

QUIET = "#8C8C8C"
# So many rows do not fit a screen, and their axis stands above them.
TALL_ROWS = 30
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Places one problem under a roofline: where it lies, what reference and best kernel attain,
    and where the kernel's point leads."""

    name: str
    x: float
    baseline: float | None
    best: float | None
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Describes a line that no kernel passes, over the whole width: y = `level` * x ** `slope`."""

    name: str
    level: float
    slope: int


@dataclass(frozen=True, kw_only=True)
class Axes:
    x: str
    y: str
    unit: str


@dataclass(frozen=True, kw_only=True)
class ProblemSpread:
    """Holds the best speedup of each submission on one problem, and where the best of all leads."""

    name: str
    speedups: tuple[float, ...]
    link: str = ""


def roofline(reaches: Sequence[Reach], limits: Sequence[Limit], axes: Axes) -> Spec:
    xs = [reach.x for reach in reaches]
    width = (min(xs, default=1.0) / 2, max(xs, default=10.0) * 2)
    solved = [reach for reach in reaches if reach.best is not None]
    data = [
        *(_limit(limit, width, limits) for limit in limits),
        _joined(solved),
        _reached(reaches, "reference", BASELINE_COLOUR, "square-open", axes),
        _reached(solved, "best kernel", KERNEL_COLOUR, "circle", axes),
    ]
    return {
        "data": [trace for trace in data if trace["x"]],
        "layout": {
            "xaxis": {"title": {"text": axes.x}, "type": "log", "dtick": 1, "exponentformat": "SI"},
            "yaxis": {"title": {"text": axes.y}, "type": "log", **decades(data)},
            "hovermode": "closest",
            "height": 460,
            "legend": {"orientation": "h", "y": 1.1},
        },
    }


def decades(traces: Iterable[Spec]) -> Spec:
    """Marks of a logarithmic axis. Plotly would write the exponents itself in a style that the
    policy of the site forbids."""
    known = [y for trace in traces for y in trace["y"] if y]
    powers = range(
        math.floor(math.log10(min(known, default=1.0))),
        math.ceil(math.log10(max(known, default=1.0))) + 1,
    )
    texts = [f"{10.0**n:g}" if -2 <= n <= 3 else f"10{str(n).translate(RAISED)}" for n in powers]
    return {"tickvals": [10.0**n for n in powers], "ticktext": texts}


def _limit(limit: Limit, width: tuple[float, float], limits: Sequence[Limit]) -> Spec:
    """Draw a limit as far as no other one lies below it."""
    steps = [width[0] * (width[1] / width[0]) ** (i / 60) for i in range(61)]
    values = [limit.level * x**limit.slope for x in steps]
    lowest = [min(other.level * x**other.slope for other in limits) for x in steps]
    inside = [
        (x, y) for x, y, least in zip(steps, values, lowest, strict=True) if y <= least * 1.0001
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(limit.name),
        "x": [significant(x) for x, _ in inside],
        "y": [significant(y) for _, y in inside],
        "line": {"color": QUIET, "width": 1.5, "dash": "dash" if limit.slope else "solid"},
        "hoverinfo": "name",
    }


def _joined(solved: Sequence[Reach]) -> Spec:
    """Draw thin lines from each reference to its best kernel, broken in between."""
    both = [(reach, reach.baseline, reach.best) for reach in solved if reach.baseline]
    xs = [value for reach, _, _ in both for value in (significant(reach.x),) * 2 + (None,)]
    ys = [
        value
        for _, low, high in both
        for value in (significant(low), significant(high or low), None)
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": ys,
        "line": {"color": QUIET, "width": 1},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _reached(reaches: Sequence[Reach], name: str, colour: str, symbol: str, axes: Axes) -> Spec:
    is_best = symbol == "circle"
    pairs = [(reach, reach.best if is_best else reach.baseline) for reach in reaches]
    known = [(reach, value) for reach, value in pairs if value is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [significant(reach.x) for reach, _ in known],
        "y": [significant(value) for _, value in known],
        "text": [label(reach.name) for reach, _ in known],
        "customdata": [reach.link for reach, _ in known] if is_best else [],
        "marker": {"color": colour, "symbol": symbol, "size": 7},
        "hovertemplate": "%{text}: %{y:.3~r} " + axes.unit,
    }


def spreads(rows: Sequence[ProblemSpread]) -> Spec:
    """Draw a strip of speedups for each problem, the best one marked; log axis."""
    names = [label(row.name) for row in rows]
    every = [
        (name, speedup)
        for name, row in zip(names, rows, strict=True)
        for speedup in sorted(row.speedups)[:-1]
    ]
    best = [(name, max(row.speedups)) for name, row in zip(names, rows, strict=True)]
    data = [
        _strip("submissions", every, KERNEL_COLOUR, "circle-open", 6),
        {
            **_strip("best", best, BASELINE_COLOUR, "diamond", 8),
            "customdata": [row.link for row in rows],
        },
    ]
    return {
        "data": [trace for trace in data if trace["x"]],
        "layout": {
            "xaxis": axis_beside(len(rows), (x for row in rows for x in row.speedups)),
            **rows_called(names),
            "shapes": [line_at(x=1.0)],
            "margin": {"t": 70},
            "showlegend": True,
            "legend": {"orientation": "h", "y": 1, "yref": "container", "yanchor": "top"},
            "hovermode": "closest",
        },
    }


def rows_called(names: Sequence[str]) -> Spec:
    """Return the part of a layout that gives each name a row, the first on top."""
    return {
        "yaxis": {
            "categoryorder": "array",
            "categoryarray": list(names),
            "range": [len(names) - 0.4, -0.6],
            "automargin": True,
            "dtick": 1,
        },
        "height": height_px(len(names)),
    }


def axis_beside(rows: int, speedups: Iterable[float]) -> Spec:
    """Return the axis of speedups for a figure of so many rows: above them where they are many."""
    axis = speedup_axis(speedups)
    return {**axis, "side": "top"} if rows > TALL_ROWS else axis


def _strip(
    name: str, points: Sequence[tuple[str, float]], colour: str, symbol: str, size: int
) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [significant(x) for _, x in points],
        "y": [y for y, _ in points],
        "marker": {"color": colour, "symbol": symbol, "size": size},
        "hovertemplate": "%{y}: %{x}×",
    }
