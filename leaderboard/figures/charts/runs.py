"""Draws what one run measured: timed calls, errors, timelines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.drawing import (
    BASELINE_COLOUR,
    COLOURS,
    KERNEL_COLOUR,
    Spec,
    height_px,
    label,
    line_at,
    marker,
    significant,
)

MOST_BINS, LEAST_BINS = 40, 8
LEAST_US = 1e-3  # an axis of ratios has no place for less
# Up to here every whole number fits beside the axis, and Plotly would name halves.
FEW_BURSTS = 8
# A pattern beside each colour, for whoever cannot tell the colours apart. A `kernel` is one that no
# name explains.
COMMUNICATION = "communication"
# That part of a communication in which some rank has not begun its own yet: no byte can arrive.
WAITING = "waiting"
EVENT_STYLES = {
    "compute": (COLOURS[0], ""),
    COMMUNICATION: (COLOURS[1], "/"),
    WAITING: ("#C9B458", "\\"),
    "kernel": (COLOURS[2], "."),
    "copy": (COLOURS[3], "x"),
    "memset": (COLOURS[6], "-"),
}
KIND_NAMES = {"kernel": "other kernel", WAITING: "waiting for another rank"}


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Holds the largest error of one rank in one trial, in units of the tolerance."""

    trial: int
    rank: int
    max_error: float


def burst_samples(kernel_us: Sequence[float], baseline_us: Sequence[float], noun: str) -> Spec:
    """Draw every timed call, or batch, in the order it ran, microseconds a call."""
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
            "hovertemplate": noun + " %{x}: %{y} µs",
        }
        for name, samples, colour, symbol in series
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": noun}},
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
            "marker": marker(i),
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


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Counts the samples between two times a call, of kernel and reference."""

    low_us: float
    high_us: float
    kernel: int
    baseline: int


@dataclass(frozen=True, kw_only=True)
class LaneEvent:
    """Describes what ran on one rank; `lane` numbers its stream or, on a CPU, thread."""

    rank: int
    queue: str
    lane: int
    name: str
    kind: str
    start_us: float
    duration_us: float


def times_last(batches: Sequence[int]) -> Spec:
    """Draw for each rank in how many batches it took longest, in per cent of all."""
    of = max(1, sum(batches))
    return {
        "data": [
            {
                "type": "bar",
                "x": [f"rank {rank}" for rank in range(len(batches))],
                "y": [round(100 * count / of, 1) for count in batches],
                "text": [str(count) for count in batches],
                "textposition": "none",
                "marker": {"color": KERNEL_COLOUR},
                "hovertemplate": "%{x}: last in %{text} batches, %{y} %",
            }
        ],
        "layout": {
            "yaxis": {"title": {"text": f"% of {sum(batches)} batches"}, "range": [0, 100]},
            "shapes": [line_at(y=100 / max(1, len(batches)))],
        },
    }


def burst_bins(kernel_us: Sequence[float], baseline_us: Sequence[float]) -> list[Bin]:
    """Return bins of equal ratio over both samples: a step to the right is a factor. Samples from
    which more was taken off than they took lie in the first."""
    samples = [max(LEAST_US, us) for us in (*kernel_us, *baseline_us)]
    bins = max(LEAST_BINS, min(MOST_BINS, len(samples) // 4))
    low, high = 0.995 * min(samples), 1.005 * max(samples)
    step = math.log(high / low) / bins
    edges = [low * math.exp(step * i) for i in range(bins + 1)]

    def counted(found: Sequence[float]) -> list[int]:
        counts = Counter(min(bins - 1, _step_of(us, low, step)) for us in found)
        return [counts[i] for i in range(bins)]

    return [
        Bin(low_us=edges[i], high_us=edges[i + 1], kernel=kernel, baseline=baseline)
        for i, (kernel, baseline) in enumerate(
            zip(counted(kernel_us), counted(baseline_us), strict=True)
        )
    ]


def _step_of(us: float, low: float, step: float) -> int:
    return int(math.log(max(LEAST_US, us) / low) / step)


def burst_histogram(bins: Sequence[Bin], plural: str) -> Spec:
    """Draw how many calls, or batches, took how long, as outlines, because the two may lie on
    each other. A step begins where its bin does, and the last one ends on the ground."""
    last = bins[-1]
    edges = [significant(found.low_us) for found in bins]
    ranges = [f"{significant(found.low_us)} to {significant(found.high_us)} µs" for found in bins]
    most = max(max(found.kernel, found.baseline) for found in bins)
    series = (
        ("reference", [found.baseline for found in bins], BASELINE_COLOUR, "dash"),
        ("kernel", [found.kernel for found in bins], KERNEL_COLOUR, "solid"),
    )
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [edges[0], *edges, *[significant(last.high_us)] * 2],
            "y": [0, *counts, counts[-1], 0],
            "text": [ranges[0], *ranges, ranges[-1], ranges[-1]],
            "line": {"color": colour, "dash": dash, "shape": "hv", "width": 1.75},
            "fill": "tozeroy",
            "fillcolor": f"{colour}22",
            "hovertemplate": "%{text}: %{y} " + plural,
        }
        for name, counts, colour, dash in series
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "µs a call"}, "type": "log", "tickformat": "~g"},
            "yaxis": {
                "title": {"text": plural},
                "rangemode": "tozero",
                **({"dtick": 1} if most <= FEW_BURSTS else {}),
            },
            "hovermode": "closest",
        },
    }


def span_of(events: Sequence[LaneEvent]) -> list[float] | None:
    """Return the µs of the first and last event: the profiler begins long before the first."""
    ends = [event.start_us + event.duration_us for event in events]
    starts = [event.start_us for event in events]
    return [round(min(starts), 2), round(max(ends), 2)] if events else None


def timeline(events: Sequence[LaneEvent]) -> Spec:
    """Draw bars by rank and stream, a colour and a pattern for each kind of event."""
    lanes = sorted({(event.rank, event.lane, event.queue) for event in events})
    names = {lane: f"rank {lane[0]} · {lane[2]} {lane[1]}" for lane in lanes}
    data = []
    for kind, (colour, pattern) in EVENT_STYLES.items():
        found = [event for event in events if event.kind == kind]
        trace = {
            "type": "bar",
            "orientation": "h",
            "name": KIND_NAMES.get(kind, kind),
            "y": [names[event.rank, event.lane, event.queue] for event in found],
            "base": [round(event.start_us, 2) for event in found],
            "x": [round(event.duration_us, 2) for event in found],
            "text": [label(event.name) for event in found],
            "textposition": "none",
            "marker": {
                "color": colour,
                "pattern": {"shape": pattern, "fillmode": "overlay", "size": 5, "solidity": 0.25},
                "line": {"width": 0},
            },
            "hovertemplate": "%{text}<br>%{x} µs from %{base} µs",
        }
        data += [trace] if found else []
    return {
        "data": data,
        "layout": {
            "barmode": "overlay",
            "xaxis": {"title": {"text": "µs since the first event"}, "range": span_of(events)},
            "yaxis": {
                "categoryorder": "array",
                "categoryarray": [names[lane] for lane in lanes],
                "autorange": "reversed",
                "automargin": True,
                "dtick": 1,
            },
            "height": height_px(2 * len(lanes)),
            "hovermode": "closest",
        },
    }
