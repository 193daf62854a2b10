"""Turns the times of batches into a speedup with its interval. Standard library only."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.messages.job import Device
from evaluator.messages.report import Phase, Progress, Timing
from evaluator.timing.interval import speedup_interval

WARMUP_CALLS = 500
TIMED_CALLS = 100
MIN_TIMED_S = 0.5
LEAST_ROUNDS = 2  # one says nothing of how rounds scatter
MERGED_CALLS_RATIO = 2.0
MERGED_CALLS_US = 100.0
ONLY_TOGETHER_US = 50.0
LOCK_PLACES = 256
LOCKED_WORDS = 4096
LEAST_SHARE = 0.25
ADVISORY_RATIO = 0.5
NOISY_SPREAD = 0.25
NOISY_DRIFT = 0.1
MAX_RANK_NS = 1 << 50


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Describes how the timed phase goes on a kind of device.

    A batch begins with what the judge does not want to time: a rank that wakes up, a GPU that turns
    from the judge's inputs to the rank's calls. Many calls make that small; where they would take
    more than `ample_bytes`, each takes long enough, and `few_calls` do; nor need a batch take much
    longer than `ample_us`, for which `least_calls` may be enough.
    """

    many_calls: int
    few_calls: int
    least_calls: int
    ample_bytes: int
    ample_us: float
    most_bytes: int
    least_batches: int
    least_warmup_s: float
    most_warmup_s: float
    most_timed_s: float

    def batch_calls(self, call_bytes: int) -> int:
        """Return how many calls a batch has whose inputs and outputs take `call_bytes` each."""
        usual = self.many_calls if call_bytes * self.many_calls <= self.ample_bytes else 0
        return usual or min(self.few_calls, max(1, self.most_bytes // call_bytes))

    def long_enough(self, call_us: float) -> int:
        """Return how many calls of `call_us` each make a batch long enough: in powers of two from
        `least_calls` on, so that the same reference has the same number again."""
        calls = self.least_calls
        while calls * call_us < self.ample_us and calls < self.many_calls:
            calls *= 2
        return calls


PACES = {
    Device.CPU: Pace(
        many_calls=16,
        few_calls=16,
        least_calls=16,
        ample_bytes=1 << 30,
        ample_us=0.0,
        most_bytes=4 << 30,
        least_batches=7,
        least_warmup_s=0.0,
        most_warmup_s=10.0,
        most_timed_s=30.0,
    ),
    Device.CUDA: Pace(
        many_calls=64,
        few_calls=16,
        least_calls=16,
        ample_bytes=2 << 30,
        ample_us=5000.0,
        most_bytes=16 << 30,
        least_batches=10,
        least_warmup_s=0.3,
        most_warmup_s=1.5,
        most_timed_s=5.0,
    ),
}


@dataclass(kw_only=True)
class Samples:
    """Collects wall times of whole batches in microseconds; `single` are batches of one call.

    `empty_us` and `empty_single_us` are batches that go through all but their calls, by the
    reference: what a batch costs beside them.
    `is_open` says that inputs of several calls of a batch could be read at once. `rank_us` and
    `baseline_rank_us` have one entry per batch too, with what each rank says of itself.
    """

    batch_calls: int
    kernel_us: list[float] = field(default_factory=list)
    baseline_us: list[float] = field(default_factory=list)
    kernel_single_us: list[float] = field(default_factory=list)
    baseline_single_us: list[float] = field(default_factory=list)
    empty_us: list[float] = field(default_factory=list)
    empty_single_us: list[float] = field(default_factory=list)
    warmup_calls: int = 0
    is_open: bool = False
    rank_us: list[list[float]] = field(default_factory=list)
    baseline_rank_us: list[list[float]] = field(default_factory=list)

    def add(self, is_kernel: bool, walls_us: list[float], *, single: bool) -> None:
        """Add batches of the kernel or of the reference."""
        if is_kernel:
            (self.kernel_single_us if single else self.kernel_us).extend(walls_us)
        else:
            (self.baseline_single_us if single else self.baseline_us).extend(walls_us)

    def add_empty(self, walls_us: list[float], *, single: bool) -> None:
        """Add empty batches."""
        (self.empty_single_us if single else self.empty_us).extend(walls_us)

    def add_rank_times(self, is_kernel: bool, rank_ns: Sequence[float]) -> None:
        """Add what the ranks say of this batch; untrusted, so cut to a sane number."""
        told = self.rank_us if is_kernel else self.baseline_rank_us
        told.append([min(ns, MAX_RANK_NS) / 1e3 / self.batch_calls for ns in rank_ns])

    def per_call(self) -> CallTimes:
        """Take off what a batch costs beside its calls, but never more than leaves a share of it:
        an empty batch may take longer than one that is over soon."""
        empty_us, alone_us = _median(self.empty_us), _median(self.empty_single_us)

        def each(walls_us: list[float], beside_us: float, calls: int) -> tuple[float, ...]:
            return tuple(max(us - beside_us, LEAST_SHARE * us) / calls for us in walls_us)

        return CallTimes(
            kernel_us=each(self.kernel_us, empty_us, self.batch_calls),
            baseline_us=each(self.baseline_us, empty_us, self.batch_calls),
            kernel_single_us=each(self.kernel_single_us, alone_us, 1),
            baseline_single_us=each(self.baseline_single_us, alone_us, 1),
            empty_us=empty_us,
        )


@dataclass(frozen=True, kw_only=True)
class CallTimes:
    """Holds microseconds of a call, one entry per batch; `empty_us` is the median of empty batches.
    A gain is what the kernel's call takes less than the reference's, in batches and alone."""

    kernel_us: tuple[float, ...]
    baseline_us: tuple[float, ...]
    kernel_single_us: tuple[float, ...]
    baseline_single_us: tuple[float, ...]
    empty_us: float

    @property
    def gain_us(self) -> float:
        """Return the gain in batches, by medians."""
        return statistics.median(self.baseline_us) - statistics.median(self.kernel_us)

    @property
    def gain_alone_us(self) -> float:
        """Return the gain of calls alone, by medians."""
        return statistics.median(self.baseline_single_us) - statistics.median(self.kernel_single_us)


def summarise(samples: Samples) -> tuple[Timing, tuple[str, ...]]:
    """Return the timing and its flags.

    Where single calls suggest that calls inside a batch were merged, they are the score: a kernel
    that needs all inputs at once gains nothing from getting them together.
    """
    flags = ["open_bursts"] if samples.is_open else []
    calls = samples.per_call()
    kernel, baseline = calls.kernel_us, calls.baseline_us
    if _is_noisy(baseline):
        flags.append("noisy_host")
    rank_us = tuple(statistics.median(own) for own in zip(*samples.rank_us, strict=True))
    if rank_us and max(rank_us) < ADVISORY_RATIO * statistics.median(kernel):
        flags.append("timing_mismatch")
    if _looks_merged(calls) or is_faster_only_together(calls):
        flags.append("superbatch_suspect")
        kernel, baseline = calls.kernel_single_us, calls.baseline_single_us
    kernel_us, baseline_us = statistics.median(kernel), statistics.median(baseline)
    speedup = baseline_us / kernel_us
    low, high = speedup_interval(kernel, baseline)
    timing = Timing(
        kernel_us=kernel_us,
        baseline_us=baseline_us,
        speedup=speedup,
        speedup_low=min(low, speedup),
        speedup_high=max(high, speedup),
        kernel_single_us=statistics.median(calls.kernel_single_us),
        baseline_single_us=statistics.median(calls.baseline_single_us),
        empty_us=calls.empty_us,
        burst_calls=samples.batch_calls,
        warmup_calls=samples.warmup_calls,
        timed_calls=len(samples.kernel_us) * samples.batch_calls,
        kernel_bursts_us=tuple(round(us, 3) for us in calls.kernel_us),
        baseline_bursts_us=tuple(round(us, 3) for us in calls.baseline_us),
        rank_us=rank_us,
        kernel_events_us=_slowest_mean(samples.rank_us),
        baseline_events_us=_slowest_mean(samples.baseline_rank_us),
    )
    return timing, tuple(flags)


def enough(batches: int, batch_calls: int, elapsed_s: float, pace: Pace) -> bool:
    """Return whether the timed phase has its calls and its time, or has used all the time it
    may."""
    has_calls = batches * batch_calls >= TIMED_CALLS and batches >= pace.least_batches
    is_late = batches >= LEAST_ROUNDS and elapsed_s >= pace.most_timed_s
    return is_late or (has_calls and elapsed_s >= MIN_TIMED_S)


def progress(batches: int, batch_calls: int, pace: Pace) -> Progress:
    """Return how far the timed phase is."""
    total = max(TIMED_CALLS, pace.least_batches * batch_calls)
    return Progress(phase=Phase.TIMED, done=min(batches * batch_calls, total), total=total)


def _median(walls_us: Sequence[float]) -> float:
    return statistics.median(walls_us) if walls_us else 0.0


def _slowest_mean(rank_us: list[list[float]]) -> float | None:
    """Return the mean of the rank whose mean is longest: how PKB's own harness sums up its
    events."""
    return max((statistics.fmean(own) for own in zip(*rank_us, strict=True)), default=None)


def _is_noisy(baseline_us: Sequence[float]) -> bool:
    """Return whether the reference's times scatter or drift: it does the same in every batch."""
    if len(baseline_us) < 4:
        return False
    low, median, high = statistics.quantiles(baseline_us, n=4)
    half = len(baseline_us) // 2
    drift = statistics.median(baseline_us[:half]) / statistics.median(baseline_us[half:])
    return high - low > NOISY_SPREAD * median or not 1 - NOISY_DRIFT < drift < 1 + NOISY_DRIFT


def is_faster_only_together(calls: CallTimes) -> bool:
    """Return whether a kernel beats the reference in batches, and not when its calls come one by
    one, where it loses more than the reference by a time that noise hardly explains."""
    lost_us = calls.gain_us - calls.gain_alone_us
    if calls.gain_alone_us > 0 or lost_us <= ONLY_TOGETHER_US:
        return False
    low, _ = speedup_interval(calls.kernel_us, calls.baseline_us)
    return low > 1


def _looks_merged(calls: CallTimes) -> bool:
    """Return whether a kernel loses far more than the reference when its calls come one by one, in
    proportion and in time: a launch that nothing hides costs the shortest kernels most."""
    kernel, baseline = statistics.median(calls.kernel_us), statistics.median(calls.baseline_us)
    kernel_alone = statistics.median(calls.kernel_single_us)
    baseline_alone = statistics.median(calls.baseline_single_us)
    lost_us, usual_us = kernel_alone - kernel, max(0.0, baseline_alone - baseline)
    in_proportion = kernel_alone / kernel > MERGED_CALLS_RATIO * max(1.0, baseline_alone / baseline)
    return in_proportion and lost_us > usual_us + MERGED_CALLS_US
