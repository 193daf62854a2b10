"""Estimates how far a speedup can be trusted: its 95 % interval. Standard library only."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from itertools import chain

RESAMPLES = 1000
LEAST_SHARE = 0.1
# The same code in another process is slower or faster by about so much, which no number of rounds
# of one process shows: with it 98 % of references that were judged as submissions held 1.0x.
PROCESS_SHARE = 0.02
_NORMAL = statistics.NormalDist().inv_cdf(0.975)


def beside_us(empty_us: float, baseline_us: float, spare_share: float) -> float:
    """Return what a batch costs beside its calls, from an empty one in which some of the
    reference's calls were made: `spare_share` of those that were left out."""
    return max(0.0, empty_us - spare_share * max(0.0, baseline_us - empty_us))


def own_us(wall_us: float, beside_us: float) -> float:
    """Return what is left of a batch's time without what it costs beside its calls. A share is left
    in any case: an empty batch may take longer than one that is over soon."""
    return max(wall_us - beside_us, LEAST_SHARE * wall_us)


def speedup_interval(
    kernel: Sequence[float],
    baseline: Sequence[float],
    empty: Sequence[float] = (),
    per_round: int = 1,
    spare_share: float = 0.0,
) -> tuple[float, float]:
    """Return the 95 % interval of median(baseline) / median(kernel), of times round by round, each
    median less what empty batches show (`beside_us`); every round has `per_round` of each.

    Rounds are resampled with what both sides took in them, because what slows a host down for a
    while slows both (percentile bootstrap of paired samples: Efron and Tibshirani, "An Introduction
    to the Bootstrap", 1993). That understates how few rounds scatter, for which Student's factor
    makes up; what processes differ by is added as an error of its own.
    """
    chooser = random.Random(0)
    columns = (kernel, baseline, empty or [0.0] * len(kernel))
    samples = list(zip(*columns, strict=True))
    rounds = [samples[start : start + per_round] for start in range(0, len(samples), per_round)]
    drawn = sorted(
        _log_ratio(chooser.choices(rounds, k=len(rounds)), spare_share) for _ in range(RESAMPLES)
    )
    middle, factor = _log_ratio(rounds, spare_share), _few_rounds_factor(len(rounds))

    def reach(scatter: float) -> float:
        return math.hypot(max(0.0, scatter) * factor, PROCESS_SHARE * _NORMAL)

    low = middle - reach(middle - drawn[int(0.025 * RESAMPLES)])
    high = middle + reach(drawn[int(0.975 * RESAMPLES) - 1] - middle)
    return math.exp(low), math.exp(high)


def _log_ratio(rounds: Sequence[Sequence[tuple[float, ...]]], spare_share: float) -> float:
    kernel, baseline, empty = map(statistics.median, zip(*chain.from_iterable(rounds), strict=True))
    beside = beside_us(empty, baseline, spare_share)
    return math.log(own_us(baseline, beside) / own_us(kernel, beside))


def _few_rounds_factor(rounds: int) -> float:
    """Return by how much a bootstrap of so many rounds is too narrow: Student's quantile over the
    normal one, by three terms of its expansion (Abramowitz and Stegun, 26.7.5), and the bias of a
    standard deviation."""
    freedom, z = max(1, rounds - 1), _NORMAL
    student = (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
    return student / z * math.sqrt((freedom + 1) / freedom)
