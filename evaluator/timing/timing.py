"""Turns the times of batches into a speedup with its interval. Standard library only."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.messages.job import Device
from evaluator.messages.report import Phase, Progress, Timing
from evaluator.timing.interval import beside_us, own_us, speedup_interval

WARMUP_CALLS = 500
TIMED_CALLS = 100
MIN_TIMED_S = 0.5
SINGLE_CALLS = 16  # of a round
SPREAD_ROUNDS = 4  # fewer have no quartiles
LEAST_ROUNDS = 2  # one says nothing of how rounds scatter
MERGED_CALLS_RATIO = 2.0
MERGED_CALLS_US = 100.0
ONLY_TOGETHER_US = 50.0
LOCK_PLACES = 256
LOCKED_WORDS = 4096
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
    longer than `ample_us`, for which `least_calls` may be enough. An empty batch begins with
    `spare_calls`, if it is long enough.
    """

    many_calls: int
    few_calls: int
    least_calls: int
    spare_calls: int
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
        spare_calls=0,
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
        spare_calls=4,
        ample_bytes=2 << 30,
        ample_us=8000.0,
        most_bytes=16 << 30,
        least_batches=8,
        least_warmup_s=0.3,
        most_warmup_s=1.5,
        most_timed_s=5.0,
    ),
}


@dataclass(kw_only=True)
class Walls:
    """Collects wall times in microseconds of batches of `calls` calls, `per_round` of each kind in
    a round.

    `empty` are batches of the reference that go through all but their calls, and so show what one
    costs beside them; their first `spare` calls are made, because the first are slower than others.
    """

    calls: int
    per_round: int = 1
    spare: int = 0
    kernel: list[float] = field(default_factory=list)
    baseline: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)

    @property
    def empty_us(self) -> float:
        """Return what a batch costs beside its calls, by medians."""
        return beside_us(_median(self.empty), _median(self.baseline), self._spare_share)

    @property
    def kernel_us(self) -> tuple[float, ...]:
        """Return the kernel's microseconds of a call, one entry per batch."""
        return self._per_call(self.kernel)

    @property
    def baseline_us(self) -> tuple[float, ...]:
        """Return the reference's."""
        return self._per_call(self.baseline)

    @property
    def gain_us(self) -> float:
        """Return what a call of the kernel takes less than the reference's."""
        return _median(self.baseline_us) - _median(self.kernel_us)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval of the speedup."""
        return speedup_interval(
            self.kernel, self.baseline, self.empty, self.per_round, self._spare_share
        )

    @property
    def _spare_share(self) -> float:
        return self.spare / (self.calls - self.spare)

    def _per_call(self, walls_us: list[float]) -> tuple[float, ...]:
        return tuple(own_us(us, self.empty_us) / self.calls for us in walls_us)


@dataclass(kw_only=True)
class Samples:
    """Collects what the timed phase measures: whole batches, and calls that came one by one.

    `is_open` says that inputs of several calls of a batch could be read at once: then single calls
    are the score. `rank_us` and `baseline_rank_us` have one entry per batch (or call) that is
    scored, with what each rank says of itself.
    """

    batches: Walls
    single: Walls
    warmup_calls: int = 0
    is_open: bool = False
    rank_us: list[list[float]] = field(default_factory=list)
    baseline_rank_us: list[list[float]] = field(default_factory=list)

    def add_rank_times(self, is_kernel: bool, rank_ns: Sequence[float], calls: int) -> None:
        """Add what the ranks say of these calls; untrusted, so cut to a sane number."""
        told = self.rank_us if is_kernel else self.baseline_rank_us
        told.append([min(ns, MAX_RANK_NS) / 1e3 / calls for ns in rank_ns])


def summarise(samples: Samples) -> tuple[Timing, tuple[str, ...]]:
    """Return the timing and its flags.

    Single calls are the score where inputs of a batch are open, and where they suggest that calls
    inside a batch were merged: a kernel that needs all inputs at once gains nothing from getting
    them together.
    """
    flags, batches, single = [], samples.batches, samples.single
    if samples.is_open:
        flags.append("open_bursts")
    elif is_suspect(samples):
        flags.append("superbatch_suspect")
    scored, shown = single if flags else batches, batches if batches.kernel else single
    kernel_us, baseline_us = _median(scored.kernel_us), _median(scored.baseline_us)
    if _is_noisy(_by_round(scored.baseline_us, scored.per_round)):
        flags.append("noisy_host")
    rank_us = tuple(statistics.median(own) for own in zip(*samples.rank_us, strict=True))
    if scored is batches and rank_us and max(rank_us) < ADVISORY_RATIO * kernel_us:
        flags.append("timing_mismatch")
    speedup = baseline_us / kernel_us
    low, high = scored.interval
    timing = Timing(
        kernel_us=kernel_us,
        baseline_us=baseline_us,
        speedup=speedup,
        speedup_low=min(low, speedup),
        speedup_high=max(high, speedup),
        kernel_single_us=_median(single.kernel_us),
        baseline_single_us=_median(single.baseline_us),
        empty_us=shown.empty_us,
        burst_calls=shown.calls,
        warmup_calls=samples.warmup_calls,
        timed_calls=len(shown.kernel) * shown.calls,
        kernel_bursts_us=tuple(round(us, 3) for us in shown.kernel_us),
        baseline_bursts_us=tuple(round(us, 3) for us in shown.baseline_us),
        rank_us=rank_us,
        kernel_events_us=_slowest_mean(samples.rank_us),
        baseline_events_us=_slowest_mean(samples.baseline_rank_us),
    )
    return timing, tuple(flags)


def lost_in_noise(samples: Samples) -> str | None:
    """Return that no speedup can be told, and why, where rounds of empty batches scatter by more
    than the kernel's own calls take; None where one can."""
    scored = samples.single if samples.is_open else samples.batches
    empty = _by_round(scored.empty, scored.per_round)
    own = _median(scored.kernel_us) * scored.calls
    if len(empty) < SPREAD_ROUNDS or (scatter := _spread(empty)) <= own:
        return None
    return f"no speedup is told: empty batches scatter by {scatter:.0f} us, calls take {own:.0f}"


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


def _median(times_us: Sequence[float]) -> float:
    return statistics.median(times_us) if times_us else 0.0


def _slowest_mean(rank_us: list[list[float]]) -> float | None:
    """Return the mean of the rank whose mean is longest: how PKB's own harness sums up its
    events."""
    return max((statistics.fmean(own) for own in zip(*rank_us, strict=True)), default=None)


def _by_round(times_us: Sequence[float], per_round: int) -> list[float]:
    starts = range(0, len(times_us), per_round)
    return [statistics.median(times_us[start : start + per_round]) for start in starts]


def _spread(times_us: Sequence[float]) -> float:
    """Return the distance between quartiles."""
    low, _, high = statistics.quantiles(times_us, n=4)
    return high - low


def _is_noisy(baseline_us: Sequence[float]) -> bool:
    """Return whether the reference's times scatter or drift: it does the same in every round."""
    if len(baseline_us) < SPREAD_ROUNDS:
        return False
    half = len(baseline_us) // 2
    drift = statistics.median(baseline_us[:half]) / statistics.median(baseline_us[half:])
    is_drifting = not 1 - NOISY_DRIFT < drift < 1 + NOISY_DRIFT
    return is_drifting or _spread(baseline_us) > NOISY_SPREAD * _median(baseline_us)


def is_suspect(samples: Samples) -> bool:
    """Return whether calls inside a batch seem to be merged."""
    return _looks_merged(samples) or _is_faster_only_together(samples)


def _is_faster_only_together(samples: Samples) -> bool:
    """Return whether a kernel beats the reference in batches, and not when its calls come one by
    one, where it loses more than the reference by a time that noise hardly explains."""
    batches, single = samples.batches, samples.single
    if single.gain_us > 0 or batches.gain_us - single.gain_us <= ONLY_TOGETHER_US:
        return False
    low, _ = batches.interval
    return low > 1


def _looks_merged(samples: Samples) -> bool:
    """Return whether a kernel loses far more than the reference when its calls come one by one, in
    proportion and in time: a launch that nothing hides costs the shortest kernels most."""
    kernel, alone = _median(samples.batches.kernel_us), _median(samples.single.kernel_us)
    usual, usual_alone = _median(samples.batches.baseline_us), _median(samples.single.baseline_us)
    in_proportion = alone / kernel > MERGED_CALLS_RATIO * max(1.0, usual_alone / usual)
    return in_proportion and alone - kernel > max(0.0, usual_alone - usual) + MERGED_CALLS_US
