"""From burst samples to a speedup with its interval. Standard library only."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.report import Phase, Progress, Timing

BURST_CALLS = 16
WARMUP_CALLS = 500
TIMED_CALLS = 100
MIN_TIMED_S = 0.5
MAX_WARMUP_S = 10.0
MAX_TIMED_S = 30.0
RESAMPLES = 1000
MERGED_CALLS_RATIO = 2.0
ADVISORY_RATIO = 0.5
MAX_RANK_NS = 1 << 50


@dataclass(kw_only=True)
class Samples:
    """Per call wall times in microseconds, one entry per burst; `single` are bursts of one call.

    `rank_us` has one entry per burst too, with what each rank says of itself.
    """

    kernel_us: list[float] = field(default_factory=list)
    baseline_us: list[float] = field(default_factory=list)
    kernel_single_us: list[float] = field(default_factory=list)
    baseline_single_us: list[float] = field(default_factory=list)
    warmup_calls: int = 0
    rank_us: list[list[float]] = field(default_factory=list)

    def add(self, is_kernel: bool, walls_us: list[float], *, single: bool) -> None:
        if is_kernel:
            (self.kernel_single_us if single else self.kernel_us).extend(walls_us)
        else:
            (self.baseline_single_us if single else self.baseline_us).extend(walls_us)

    def add_rank_times(self, rank_ns: list[float]) -> None:
        """What the ranks say of a call of this burst; untrusted, so cut to a sane number."""
        self.rank_us.append([min(ns, MAX_RANK_NS) / 1e3 for ns in rank_ns])


def summarise(samples: Samples, burst_calls: int) -> tuple[Timing, tuple[str, ...]]:
    """The timing and its flags.

    Where bursts of one call show that calls inside a burst were merged, the single calls are the
    score: a kernel that needs all inputs at once gains nothing from getting them together.
    """
    flags = []
    kernel, baseline = samples.kernel_us, samples.baseline_us
    if _looks_merged(samples):
        flags.append("superbatch_suspect")
        kernel, baseline = samples.kernel_single_us, samples.baseline_single_us
    rank_us = tuple(statistics.median(own) for own in zip(*samples.rank_us, strict=True))
    if rank_us and max(rank_us) < ADVISORY_RATIO * statistics.median(samples.kernel_us):
        flags.append("timing_mismatch")
    kernel_us, baseline_us = statistics.median(kernel), statistics.median(baseline)
    speedup = baseline_us / kernel_us
    low, high = speedup_interval(kernel, baseline)
    timing = Timing(
        kernel_us=kernel_us,
        baseline_us=baseline_us,
        speedup=speedup,
        speedup_low=min(low, speedup),
        speedup_high=max(high, speedup),
        kernel_single_us=statistics.median(samples.kernel_single_us),
        baseline_single_us=statistics.median(samples.baseline_single_us),
        burst_calls=burst_calls,
        warmup_calls=samples.warmup_calls,
        timed_calls=len(samples.kernel_us) * burst_calls,
        kernel_bursts_us=tuple(round(us, 3) for us in samples.kernel_us),
        baseline_bursts_us=tuple(round(us, 3) for us in samples.baseline_us),
        rank_us=rank_us,
    )
    return timing, tuple(flags)


def speedup_interval(kernel: Sequence[float], baseline: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of median(baseline) / median(kernel), each resampled on its own."""
    chooser = random.Random(0)
    ratios = sorted(
        statistics.median(chooser.choices(baseline, k=len(baseline)))
        / statistics.median(chooser.choices(kernel, k=len(kernel)))
        for _ in range(RESAMPLES)
    )
    return ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES) - 1]


def enough(calls: int, elapsed_s: float) -> bool:
    """Whether the timed phase has its calls and its time, or has used all the time it may."""
    return elapsed_s >= MAX_TIMED_S or (calls >= TIMED_CALLS and elapsed_s >= MIN_TIMED_S)


def progress(calls: int) -> Progress:
    return Progress(phase=Phase.TIMED, done=min(calls, TIMED_CALLS), total=TIMED_CALLS)


def _looks_merged(samples: Samples) -> bool:
    """A kernel slows down far more than the reference when its calls come one by one."""
    if not samples.kernel_single_us or not samples.baseline_single_us:
        return False
    kernel = statistics.median(samples.kernel_single_us) / statistics.median(samples.kernel_us)
    baseline = statistics.median(samples.baseline_single_us) / statistics.median(
        samples.baseline_us
    )
    return kernel > MERGED_CALLS_RATIO * max(1.0, baseline)
