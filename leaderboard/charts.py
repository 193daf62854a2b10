"""Figures as plain Plotly specifications: data in, a JSON-able dict out.

Specs carry no theme; the drawing script adds ink, grid and font from the page's style sheet. Names
come from submitters, and Plotly reads a little HTML in labels, so every name is escaped here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.scores import FAILURE_MODES
from leaderboard.visible import visible

Spec = dict[str, Any]

# Okabe and Ito's palette without its yellow and black, which vanish on light or dark paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross")
MODE_COLOURS = dict(
    zip(
        FAILURE_MODES,
        ("#D55E00", "#E69F00", "#CC79A7", "#8C8C8C", "#56B4E9", "#5A4FA2", "#009E73"),
        strict=True,
    )
)
KERNEL_COLOUR, BASELINE_COLOUR = COLOURS[0], COLOURS[1]
LABEL_LENGTH = 48


@dataclass(frozen=True, kw_only=True)
class Curve:
    """fast_p over thresholds p; a published one was read off a plot and is drawn dotted.

    Curves of one model share its colour.
    """

    model: str
    name: str
    thresholds: tuple[float, ...]
    shares: tuple[float | None, ...]
    published: bool = False


@dataclass(frozen=True, kw_only=True)
class ModeCounts:
    name: str
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Largest error of one rank in one trial, in units of the tolerance."""

    trial: int
    rank: int
    max_error: float


@dataclass(frozen=True, kw_only=True)
class Speedup:
    name: str
    speedup: float
    low: float
    high: float


def fast_p_curves(curves: Sequence[Curve]) -> Spec:
    models = list(dict.fromkeys(curve.model for curve in curves))
    styles = {model: i % len(COLOURS) for i, model in enumerate(models)}
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if curve.published else "lines",
            "name": label(curve.name) + (" (published)" if curve.published else ""),
            "x": list(curve.thresholds),
            "y": [None if share is None else round(100 * share, 3) for share in curve.shares],
            "line": {
                "color": COLOURS[styles[curve.model]],
                "width": 1.5 if curve.published else 2.25,
                "dash": "dot" if curve.published else "solid",
            },
            "marker": {"symbol": SYMBOLS[styles[curve.model]], "size": 6},
            "hovertemplate": "p = %{x}: %{y:.1f} %",
        }
        for curve in curves
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "speedup threshold p"}, "rangemode": "tozero"},
            "yaxis": {
                "title": {"text": "% of problems"},
                "rangemode": "tozero",
            },
            "shapes": [_line(x=1.0)],
            "hovermode": "closest",
        },
    }


def failure_modes(rows: Sequence[ModeCounts]) -> Spec:
    names = [label(row.name) for row in rows]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": mode,
            "y": names,
            "x": [row.counts.get(mode, 0) for row in rows],
            "text": [str(row.counts.get(mode, 0)) for row in rows],
            "textposition": "none",
            "marker": {"color": MODE_COLOURS[mode]},
            "hovertemplate": "%{y}: %{text} " + mode,
        }
        for mode in reversed(FAILURE_MODES)
    ]
    return {
        "data": data,
        "layout": {
            "barmode": "stack",
            "barnorm": "percent",
            "xaxis": {"title": {"text": "% of kernels"}},
            "yaxis": {"autorange": "reversed", "automargin": True, "dtick": 1},
            "height": height_px(len(rows)),
            "legend": {"traceorder": "normal"},
        },
    }


def burst_samples(kernel_us: Sequence[float], baseline_us: Sequence[float]) -> Spec:
    """Every timed burst in the order it ran, microseconds a call."""
    series = (
        ("reference", baseline_us, BASELINE_COLOUR, "square"),
        ("kernel", kernel_us, KERNEL_COLOUR, "circle"),
    )
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": list(range(1, len(samples) + 1)),
            "y": [significant(sample) for sample in samples],
            "marker": {"color": colour, "symbol": symbol, "size": 6},
            "hovertemplate": "burst %{x}: %{y} µs",
        }
        for name, samples, colour, symbol in series
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "burst"}},
            "yaxis": {"title": {"text": "µs a call"}, "rangemode": "tozero"},
        },
    }


def error_margins(margins: Sequence[Margin], floor: float = 1e-6) -> Spec:
    """Log scale; the line at 1 is the tolerance. Exact answers are drawn at `floor`."""
    ranks = sorted({margin.rank for margin in margins})
    errors = [max(margin.max_error, floor) for margin in margins]
    low, high = min(errors, default=floor), max([1.0, *errors])
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"rank {rank}",
            "x": [m.trial for m in margins if m.rank == rank],
            "y": [significant(max(m.max_error, floor)) for m in margins if m.rank == rank],
            "marker": {
                "color": COLOURS[i % len(COLOURS)],
                "symbol": SYMBOLS[i % len(SYMBOLS)],
                "size": 7,
            },
            "hovertemplate": "trial %{x}: %{y} of the tolerance",
        }
        for i, rank in enumerate(ranks)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "trial"}, "dtick": 1},
            "yaxis": {
                "title": {"text": "largest error / tolerance"},
                "type": "log",
                "dtick": 1,
                "tickformat": "~g",
                "range": [math.log10(low / 2), math.log10(high * 2)],
            },
            "shapes": [_line(y=1.0)],
        },
    }


def speedups(kernels: Sequence[Speedup]) -> Spec:
    """One submission's correct kernels, fastest first, with their 95 % intervals."""
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
        "marker": {"color": KERNEL_COLOUR, "size": 7},
        "hovertemplate": "%{y}: %{x}×",
    }
    return {
        "data": [trace],
        "layout": {
            "xaxis": {"title": {"text": "speedup over the reference, ×"}, "type": "log"},
            "yaxis": {"autorange": "reversed", "automargin": True, "dtick": 1},
            "height": height_px(len(kernels)),
            "shapes": [_line(x=1.0)],
            "showlegend": False,
        },
    }


def height_px(rows: int) -> int:
    """Room for a label on every row."""
    return max(350, 18 * rows + 90)


def label(name: str) -> str:
    name = visible(name)
    short = name if len(name) <= LABEL_LENGTH else name[: LABEL_LENGTH - 1] + "…"
    return html.escape(short, quote=False)


def significant(number: float) -> float:
    """Four significant digits: more is noise and weight."""
    return float(f"{number:.4g}")


def _line(*, x: float | None = None, y: float | None = None) -> Spec:
    """A dotted line across the plot at a value that means something."""
    across = (
        {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
        if x is not None
        else {"y0": y, "y1": y, "x0": 0, "x1": 1, "xref": "paper"}
    )
    return {"type": "line", "line": {"width": 1, "dash": "dot", "color": "#8C8C8C"}, **across}
