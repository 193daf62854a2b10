"""Draws where models succeed: a heat map of categories by models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaderboard.figures.charts.boards import ByCategory
from leaderboard.figures.charts.drawing import Spec, height_px, label, labels, stacked_bars

# Pale is little and dark is much, so it reads without colour too. Few values lie in the middle,
# where neither dark nor white numbers are easy to read.
SCALE = (
    (0.0, "#f7f5e8"),
    (0.25, "#d9e8d2"),
    (0.5, "#a8d3c6"),
    (0.62, "#3d7fa1"),
    (0.8, "#2f5d8c"),
    (1.0, "#28326b"),
)


DONE, LEFT = "#2f6f9f", "#b9b9b3"


def counts(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[int]]) -> Spec:
    """Draw a number in every cell of rows by columns; none where it is 0."""
    most = max((max(row, default=0) for row in values), default=0) or 1
    shares = [
        ByCategory(model="", name=name, values=tuple(row[i] / most or None for row in values))
        for i, name in enumerate(columns)
    ]
    spec = heat_map(shares, rows, "share of the most")
    (trace,) = spec["data"]
    trace["text"] = [[str(value or "") for value in row] for row in values]
    trace["hovertemplate"] = "%{y}<br>%{x}<br>%{text} problems<extra></extra>"
    return spec


def coverage(rows: Sequence[Sequence[Any]]) -> Spec:
    """Draw a bar for each row of a name, a number that is done and one that is left."""
    names = labels([str(name) for name, *_ in rows])
    parts = (("solved here", 1, DONE), ("not solved here", 2, LEFT))
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": words,
            "y": names,
            "x": [row[at] for row in rows],
            "marker": {"color": colour},
            "hovertemplate": "%{y}: %{x} " + words,
        }
        for words, at, colour in parts
    ]
    return {"data": data, "layout": stacked_bars(len(rows), "problems")}


def heat_map(rows: Sequence[ByCategory], categories: Sequence[str], metric: str) -> Spec:
    """Draw per cent in every cell; an empty cell is a share that nobody knows."""
    shares = [[row.values[i] for row in rows] for i in range(len(categories))]
    trace = {
        "type": "heatmap",
        "x": labels([row.name for row in rows]),
        "y": [label(category) for category in categories],
        "z": [[_per_cent(share) for share in row] for row in shares],
        "text": [[_whole(share) for share in row] for row in shares],
        "texttemplate": "%{text}",
        "textfont": {"size": 11},  # else as small as the longest number needs in a narrow cell
        "hovertemplate": f"%{{y}}<br>%{{x}}<br>{metric}: %{{z:.1f}} %<extra></extra>",
        "colorscale": [list(stop) for stop in SCALE],
        "zmin": 0,
        "zmax": 100,
        "xgap": 2,
        "ygap": 2,
        "showscale": False,  # every cell has its number, and a colour bar would break the policy
    }
    return {
        "data": [trace],
        "layout": {
            "xaxis": {
                "side": "top",
                "showgrid": False,
                "tickangle": -35,
                "automargin": True,
                "dtick": 1,
            },
            "yaxis": {"autorange": "reversed", "showgrid": False, "automargin": True, "dtick": 1},
            "height": height_px(2 * len(categories)),
        },
    }


def _per_cent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


def _whole(share: float | None) -> str:
    """Return whole per cent as tables show it: 5 of 11 is 45, and by way of 45.5 it would be 46."""
    return "" if share is None else f"{100 * share:.0f}"
