"""Draws what passes PKB's own check beside what passes hidden inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leaderboard.figures.charts.drawing import COLOURS, Spec, labels, stacked_bars

BLUE, VERMILION, GREEN, *_, GREY = COLOURS


class ProfileCounts(NamedTuple):
    """Holds a row's problems by what they pass."""

    name: str
    both: int
    upstream_only: int
    hardened_only: int
    neither: int


PARTS = (
    ("both", "right under both", GREEN),
    ("upstream_only", "passes PKB's check only", VERMILION),
    ("hardened_only", "passes hidden inputs only", BLUE),
    ("neither", "fails both", GREY),
)


def counted(rows: Sequence[tuple[str, int]], what: str) -> Spec:
    """Draw a bar for each name, as long as its count, which it shows."""
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": labels([name for name, _ in rows]),
        "x": [count for _, count in rows],
        "text": [str(count) for _, count in rows],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": VERMILION},
        "hovertemplate": "%{y}: %{x} " + what + "<extra></extra>",
    }
    layout = stacked_bars(len(rows), what, showlegend=False)
    return {"data": [trace], "layout": {**layout, "height": 110 + 42 * len(rows)}}


def both_profiles(rows: Sequence[ProfileCounts]) -> Spec:
    """Draw the problems of each row as one bar, parted by the checks that they pass."""
    names = labels([row.name for row in rows])
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": words,
            "y": names,
            "x": [getattr(row, field) for row in rows],
            "marker": {"color": colour},
            "hovertemplate": "%{y}: %{x} " + words,
        }
        for field, words, colour in PARTS
    ]
    return {
        "data": data,
        "layout": stacked_bars(len(rows), "problems judged under both"),
    }
