"""Estimates how far a speedup can be trusted: its 95 % interval. Standard library only."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

RESAMPLES = 1000
# The same code in another process is slower or faster by about so much, which no number of calls of
# one process shows.
PROCESS_SHARE = 0.02
_NORMAL = statistics.NormalDist().inv_cdf(0.975)


def speedup_interval(
    kernel_us: Sequence[float], baseline_us: Sequence[float], resolution_us: float = 0.0
) -> tuple[float, float]:
    """Return the 95 % interval of median(baseline) / median(kernel) of positive times.

    Calls of each side are resampled (percentile bootstrap: Efron and Tibshirani, "An Introduction
    to the Bootstrap", 1993), and what processes differ by is an error of its own. The interval
    holds 1 where the medians differ by less than the resolution.
    """
    chooser = random.Random(0)
    drawn = sorted(
        math.log(_drawn(chooser, baseline_us) / _drawn(chooser, kernel_us))
        for _ in range(RESAMPLES)
    )
    kernel, baseline = statistics.median(kernel_us), statistics.median(baseline_us)
    middle, half = math.log(baseline / kernel), resolution_us / 2

    def reach(scatter: float) -> float:
        return math.hypot(max(0.0, scatter), PROCESS_SHARE * _NORMAL)

    low = middle - reach(middle - drawn[int(0.025 * RESAMPLES)])
    high = middle + reach(drawn[int(0.975 * RESAMPLES) - 1] - middle)
    slowest = max(baseline - half, baseline / 2) / (kernel + half)
    fastest = (baseline + half) / max(kernel - half, kernel / 2)
    return min(math.exp(low), slowest), max(math.exp(high), fastest)


def _drawn(chooser: random.Random, times_us: Sequence[float]) -> float:
    return statistics.median(chooser.choices(times_us, k=len(times_us)))
