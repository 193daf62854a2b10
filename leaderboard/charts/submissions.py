"""The kernels of one submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts.drawing import KERNEL_COLOUR, Spec, height_px, label, line_at, significant


@dataclass(frozen=True, kw_only=True)
class Speedup:
    name: str
    speedup: float
    low: float
    high: float


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
            "shapes": [line_at(x=1.0)],
            "showlegend": False,
        },
    }
