"""Turns the times of calls into a speedup with its interval. Standard library only."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evaluator.messages.report import ThreeTimes, Timing
from evaluator.timing.interval import speedup_interval

AGREEMENT = 0.03
QUARTERS, NOISY_SPREAD, NOISY_DRIFT = 4, 0.25, 0.1
DISAGREEING = 1.5
LEAST_US = 0.001  # that is written down of a call that ended before an empty one does


@dataclass(kw_only=True)
class Times:
    """Collects the microseconds of one side's calls, whatever surrounds them included.

    `empty` are calls of the reference's process without the solution, `eager` calls that were
    launched once their inputs were there, `series` calls back to back, the time of one, and
    `empty_series` empty ones.
    `ahead` has for each call whether all of it was queued before.
    """

    calls: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    eager: list[float] = field(default_factory=list)
    series: list[float] = field(default_factory=list)
    empty_series: list[float] = field(default_factory=list)
    ahead: list[bool] = field(default_factory=list)
    warmup_calls: int = 0

    @property
    def us(self) -> float:
        """Return the median of the calls."""
        return statistics.median(self.calls)

    @property
    def empty_us(self) -> float:
        """Return the median of the empty calls, 0 if there are none."""
        return statistics.median(self.empty) if self.empty else 0.0

    @property
    def resolution_us(self) -> float:
        """Return how far empty calls scatter, from 10 to 90 %."""
        return _scatter(self.empty)

    def joined(self, other: Times) -> Times:
        """Return one sample of both."""
        return Times(
            calls=self.calls + other.calls,
            empty=self.empty + other.empty,
            eager=self.eager + other.eager,
            series=self.series + other.series,
            empty_series=self.empty_series + other.empty_series,
            ahead=self.ahead + other.ahead,
            warmup_calls=self.warmup_calls,
        )

    def agrees_with(self, other: Times) -> bool:
        """Return True if the medians differ by no more than AGREEMENT or the resolution."""
        limit = max(AGREEMENT * min(self.us, other.us), self.resolution_us, other.resolution_us)
        return abs(self.us - other.us) <= limit


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Holds how long the reference takes, alone: `before` the submission's processes existed and
    `after` they were gone, None while that was not measured. `is_drifted` where the two differ."""

    before: Times
    after: Times | None = None
    is_drifted: bool = False

    @property
    def times(self) -> Times:
        """Return both as one sample, or the faster where they differ."""
        if self.after is None:
            return self.before
        if self.is_drifted:
            return min(self.before, self.after, key=lambda own: own.us)
        return self.before.joined(self.after)


def summarise(
    kernel: Times, baseline: Baseline, *, subtracts_empty: bool, is_kept: bool = False
) -> tuple[Timing, tuple[str, ...]]:
    """Return the timing and its flags. Where it `subtracts_empty`, an empty call's time is taken
    off every call of both sides; a baseline `is_kept` that an earlier run measured."""
    reference, after = baseline.times, baseline.after
    empty_us = reference.empty_us if subtracts_empty else 0.0
    series_us = statistics.median(reference.empty_series or [0.0])
    own, usual = (_less(times, empty_us, series_us) for times in (kernel, reference))
    low, high = speedup_interval(own.calls, usual.calls, reference.resolution_us)
    speedup = usual.us / own.us
    timing = Timing(
        kernel_us=own.us,
        baseline_us=usual.us,
        speedup=speedup,
        speedup_low=min(low, speedup),
        speedup_high=max(high, speedup),
        empty_us=empty_us,
        resolution_us=reference.resolution_us,
        warmup_calls=kernel.warmup_calls,
        timed_calls=len(own.calls),
        kernel_bursts_us=_rounded(own.calls),
        baseline_bursts_us=_rounded(usual.calls),
        kernel=_three(own),
        baseline=_three(usual),
        before_us=max(LEAST_US, baseline.before.us - empty_us),
        after_us=None if is_kept or after is None else max(LEAST_US, after.us - empty_us),
        ahead=statistics.fmean(kernel.ahead) if kernel.ahead else None,
    )
    found = {
        "baseline_drifted": baseline.is_drifted,
        "noisy_host": _is_noisy(reference.calls),
        "times_disagree": _disagree(timing),
    }
    return timing, tuple(flag for flag, is_found in found.items() if is_found)


def held_to(timing: Timing, least_us: float) -> Timing:
    """Return a timing in which no call of the kernel takes less than `least_us`."""
    least_us = math.ceil(least_us * 1000) / 1000
    kernel_us = max(least_us, timing.kernel_us)
    speedup = timing.baseline_us / kernel_us
    return replace(
        timing,
        kernel_us=kernel_us,
        kernel_bursts_us=tuple(max(least_us, us) for us in timing.kernel_bursts_us),
        kernel=replace(timing.kernel, answer_us=kernel_us) if timing.kernel else None,
        speedup=speedup,
        speedup_low=min(timing.speedup_low, speedup),
        speedup_high=max(timing.speedup_high, speedup),
    )


def _less(times: Times, empty_us: float, series_us: float) -> Times:
    """Return the times of calls without what an empty one takes, alone and in a series."""

    def own(us: Sequence[float], less_us: float) -> list[float]:
        return [max(LEAST_US, one - less_us) for one in us]

    calls, eager = own(times.calls, empty_us), own(times.eager, empty_us)
    return replace(times, calls=calls, eager=eager, series=own(times.series, series_us))


def _three(times: Times) -> ThreeTimes:
    eager, series = times.eager, times.series
    return ThreeTimes(
        answer_us=times.us,
        call_us=statistics.median(eager) if eager else None,
        series_us=statistics.median(series) if series else None,
    )


def _rounded(times_us: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(us, 3) for us in times_us)


def _disagree(timing: Timing) -> bool:
    """Return True if the score praises a kernel far more than its calls back to back do."""
    own, usual = timing.kernel, timing.baseline
    if own is None or usual is None or not own.series_us or not usual.series_us:
        return False
    return timing.speedup > DISAGREEING * usual.series_us / own.series_us


def _scatter(times_us: Sequence[float]) -> float:
    if len(times_us) < 2:
        return 0.0
    deciles = statistics.quantiles(times_us, n=10, method="inclusive")
    return deciles[-1] - deciles[0]


def _is_noisy(times_us: Sequence[float]) -> bool:
    """Return True if the reference gets slower or faster: lengths and options of its calls take
    turns, so a quarter of the calls takes as long as another."""
    if len(times_us) < 2 * QUARTERS:
        return False
    each = len(times_us) // QUARTERS
    own = [statistics.median(times_us[at * each : (at + 1) * each]) for at in range(QUARTERS)]
    drift = statistics.fmean(own[:2]) / statistics.fmean(own[2:])
    is_drifting = not 1 - NOISY_DRIFT < drift < 1 + NOISY_DRIFT
    return is_drifting or max(own) - min(own) > NOISY_SPREAD * statistics.median(own)
