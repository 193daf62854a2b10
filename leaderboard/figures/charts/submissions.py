"""Draws the kernels of one submission, and all submissions of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.boards import ByCategory
from leaderboard.figures.charts.drawing import (
    COLOURS,
    KERNEL_COLOUR,
    Spec,
    height_px,
    label,
    line_at,
    marker,
    significant,
    speedup_axis,
)
from leaderboard.figures.charts.problems import QUIET, axis_beside, rows_called


@dataclass(frozen=True, kw_only=True)
class Speedup:
    name: str
    speedup: float
    low: float
    high: float
    used: float | None = None
    link: str = ""

    @property
    def in_words(self) -> str:
        """Return its interval, and the share of the bound that it reaches."""
        interval = f"95 % from {significant(self.low):g} to {significant(self.high):g}"
        bound = "" if self.used is None else f", {100 * self.used:.1f} % of the bound"
        return interval + bound


@dataclass(frozen=True, kw_only=True)
class Series:
    """Holds the best speedup of one submission on each problem that it solved."""

    name: str
    points: tuple[tuple[str, float], ...]
    links: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Trail:
    """Holds the best speedup up to each step; a typical one is drawn above the others."""

    name: str
    best: tuple[float | None, ...]
    typical: bool = False


def speedups(kernels: Sequence[Speedup]) -> Spec:
    """Draw one submission's correct kernels, fastest first, with their 95 % intervals."""
    ordered = sorted(kernels, key=lambda kernel: kernel.speedup, reverse=True)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "name": "speedup",
        "x": [significant(kernel.speedup) for kernel in ordered],
        "y": [label(kernel.name) for kernel in ordered],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [significant(kernel.high - kernel.speedup) for kernel in ordered],
            "arrayminus": [significant(kernel.speedup - kernel.low) for kernel in ordered],
            "thickness": 1.25,
            "width": 3,
        },
        "customdata": [kernel.link for kernel in ordered],
        "marker": {"color": KERNEL_COLOUR, "size": 7},
        "text": [kernel.in_words for kernel in ordered],
        "hovertemplate": "%{y}: %{x}×, %{text}",
    }
    rows = len({kernel.name for kernel in kernels})
    return {
        "data": [trace],
        "layout": {
            "xaxis": axis_beside(rows, (x for one in kernels for x in (one.low, one.high))),
            "yaxis": {"range": [rows - 0.4, -0.6], "automargin": True, "dtick": 1},
            "height": height_px(rows),
            "shapes": [line_at(x=1.0)],
            "showlegend": False,
        },
    }


def speedups_by_problem(series: Sequence[Series]) -> Spec:
    """Draw a row for each problem, the fastest first; a mark for each submission."""
    best: dict[str, float] = {}
    for one in series:
        for name, speedup in one.points:
            best[name] = max(best.get(name, speedup), speedup)
    names = [label(name) for name in sorted(best, key=lambda name: -best[name])]
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": label(one.name),
            "x": [significant(speedup) for _, speedup in one.points],
            "y": [label(name) for name, _ in one.points],
            "customdata": list(one.links),
            "marker": marker(i),
            "hovertemplate": "%{y}: %{x}×",
        }
        for i, one in enumerate(series)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": axis_beside(len(names), (x for one in series for _, x in one.points)),
            **rows_called(names),
            "shapes": [line_at(x=1.0)],
            "showlegend": True,
            "margin": {"t": 70},
            "legend": {"orientation": "h", "y": 1, "yref": "container", "yanchor": "top"},
            "hovermode": "closest",
        },
    }


def by_category(rows: Sequence[ByCategory], titles: Sequence[str]) -> Spec:
    """Draw a bar for each row at each category, the first category on top: per cent of its problems
    solved. Where nothing was tried there is no bar."""
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": label(row.name),
            "x": [None if share is None else round(100 * share, 1) for share in row.values],
            "y": [label(title) for title in titles],
            "marker": {"color": COLOURS[nth % len(COLOURS)]},
            "hovertemplate": "%{y}: %{x} %",
        }
        for nth, row in enumerate(rows)
    ]
    return {
        "data": data,
        "layout": {
            "barmode": "group",
            "xaxis": {"title": {"text": "% of the category's problems solved"}, "range": [0, 100]},
            "yaxis": {"autorange": "reversed", "automargin": True, "dtick": 1},
            "height": height_px(len(titles) * (1 + len(rows)) // 2),
            "showlegend": True,
            "margin": {"t": 70},
            "legend": {"orientation": "h", "y": 1, "yref": "container", "yanchor": "top"},
        },
    }


def by_step(right: Sequence[float], fast: Sequence[float]) -> Spec:
    """Draw per cent of problems that an attempt solves, and solves fast, had it been stopped after
    each step."""
    lines = (("pass@1", right, "solid"), ("fast₁@1", fast, "dash"))
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": list(range(1, len(shares) + 1)),
            "y": [round(100 * share, 3) for share in shares],
            "line": {"shape": "hv", "width": 2.25, "dash": dash},
            "marker": marker(nth),
            "hovertemplate": "step %{x}: %{y:.1f} %",
        }
        for nth, (name, shares, dash) in enumerate(lines)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "stopped after step"}, "dtick": 1},
            "yaxis": {"title": {"text": "% of problems"}, "rangemode": "tozero"},
            "showlegend": True,
            "hovermode": "closest",
        },
    }


def progress(trails: Sequence[Trail]) -> Spec:
    """Draw the best speedup so far over the steps of agentic attempts."""
    data = []
    every = (speedup for trail in trails for speedup in trail.best)
    for trail in sorted(trails, key=lambda trail: trail.typical):
        known = [speedup is not None for speedup in trail.best]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if trail.typical else "lines",
                "name": label(trail.name),
                "x": list(range(1, len(trail.best) + 1)),
                "y": [None if s is None else significant(s) for s in trail.best],
                "line": {
                    "color": KERNEL_COLOUR if trail.typical else QUIET,
                    "width": 3 if trail.typical else 1,
                    "shape": "linear" if trail.typical else "hv",
                },
                "opacity": 1.0 if trail.typical else 0.4,
                "showlegend": trail.typical and any(known),
                "hovertemplate": "step %{x}: %{y}×",
            }
        )
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "step"}, "dtick": 1},
            "yaxis": speedup_axis(filter(None, every), "best speedup so far, ×"),
            "shapes": [line_at(y=1.0)],
            "hovermode": "closest",
            "height": 420,
            "legend": {"orientation": "h", "y": 1.1},
        },
    }
