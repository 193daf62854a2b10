"""Draws what a class of hardware reaches of its datasheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.drawing import (
    BASELINE_COLOUR,
    KERNEL_COLOUR,
    Spec,
    height_px,
    label,
    line_at,
    significant,
)


@dataclass(frozen=True, kw_only=True)
class DatasheetShare:
    """Holds shares of the datasheet's number, 1.0 being all of it."""

    name: str
    median: float
    best: float


def shares(rows: Sequence[DatasheetShare]) -> Spec:
    names = [label(row.name) for row in rows]
    bars = {
        "type": "bar",
        "orientation": "h",
        "name": "median",
        "y": names,
        "x": [significant(100 * row.median) for row in rows],
        "marker": {"color": KERNEL_COLOUR, "opacity": 0.75},
        "hovertemplate": "%{y}: %{x} %",
    }
    best = {
        "type": "scatter",
        "mode": "markers",
        "name": "best",
        "y": names,
        "x": [significant(100 * row.best) for row in rows],
        "marker": {"color": BASELINE_COLOUR, "symbol": "line-ns-open", "size": 12},
        "hovertemplate": "%{y}, best: %{x} %",
    }
    return {
        "data": [bars, best],
        "layout": {
            "xaxis": {"title": {"text": "% of the datasheet"}, "range": [0, 108]},
            "yaxis": {"autorange": "reversed", "automargin": True, "dtick": 1},
            "height": height_px(len(rows)),
            "bargap": 0.45,
            "shapes": [line_at(x=100.0)],
            "legend": {"orientation": "h", "y": 1.08},
        },
    }
