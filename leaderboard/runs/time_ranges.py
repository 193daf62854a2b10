"""Says which times a call can have taken, and when two that were reported are the same."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from evaluator import Device, Report, Verdict, limits_of

# No call of a correct kernel takes less, batched or not: on a GPU it is at least one launch, which
# costs the processor 2 us; on a processor a function and an operator of torch.
LEAST_CALL_US = {Device.CUDA: 1.0, Device.CPU: 0.2}
# Nor does anything that a clock of nanoseconds has seen.
LEAST_US = 1e-3
# Times of calls are told in thousandths of a microsecond, everything else as it is.
ROUNDED_US = 1e-3
RELATIVE = 1e-6


def call_range_us(report: Report, device: Device) -> tuple[float, float]:
    """Return the least and the most that a call takes. What was found to be faster than the
    hardware may have any time that a clock can tell."""
    least_us = LEAST_CALL_US[device] if report.verdict is Verdict.OK else LEAST_US
    return least_us, limits_of(device).timed_s * 1e6


def lie_in(times_us: Iterable[float], least_us: float, most_us: float) -> bool:
    return all(least_us <= us <= most_us for us in times_us)


def are_medians(told_us: Iterable[float], samples_us: Iterable[Sequence[float]]) -> bool:
    """Return whether each time is the median of its samples."""
    found = map(statistics.median, samples_us)
    return all(is_near(one, other) for one, other in zip(told_us, found, strict=True))


def is_near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ROUNDED_US)


def is_longer(calls_us: float, seconds: float) -> bool:
    return calls_us > seconds * 1e6 * (1 + ROUNDED_US)
