"""What one run measured: bursts, errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.charts.drawing import (
    BASELINE_COLOUR,
    COLOURS,
    KERNEL_COLOUR,
    SYMBOLS,
    Spec,
    line_at,
    significant,
)


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Largest error of one rank in one trial, in units of the tolerance."""

    trial: int
    rank: int
    max_error: float


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
            "shapes": [line_at(y=1.0)],
        },
    }
