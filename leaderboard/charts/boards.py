"""How the rows of a board compare: fast_p curves, failure modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.charts.drawing import COLOURS, SYMBOLS, Spec, height_px, label, line_at
from leaderboard.scores import FAILURE_MODES

MODE_COLOURS = dict(
    zip(
        FAILURE_MODES,
        ("#D55E00", "#E69F00", "#CC79A7", "#8C8C8C", "#56B4E9", "#5A4FA2", "#009E73"),
        strict=True,
    )
)


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
            "shapes": [line_at(x=1.0)],
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
