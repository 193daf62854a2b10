"""Turns the times of batches into a speedup with its interval. Standard library only."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evaluator.messages.report import Timing
from evaluator.timing.interval import beside_us, own_us, speedup_interval

SPREAD_ROUNDS = 4  # fewer have no quartiles
MERGED_CALLS_RATIO = 2.0
MERGED_CALLS_US = 100.0
ONLY_TOGETHER_US = 50.0
LOCK_PLACES = 256
LOCKED_WORDS = 4096
ADVISORY_RATIO = 0.5
NOISY_SPREAD = 0.25
NOISY_DRIFT = 0.1
DISTURBED_RATIO = 1.25
MAX_RANK_NS = 1 << 50


@dataclass(kw_only=True)
class Walls:
    """Collects wall times in microseconds of batches of `calls` calls, `per_round` of each kind in
    a round.

    `empty` are batches of the reference that go through all but their calls, and so show what one
    costs beside them; their first `spare` calls are made, because the first are slower than others.
    `skew` has, of those made alone, how long after the first rank the last one began.
    """

    calls: int
    per_round: int = 1
    spare: int = 0
    kernel: list[float] = field(default_factory=list)
    baseline: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    skew: list[float] = field(default_factory=list)

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
    def speedup(self) -> float:
        """Return the reference's time of a call over the kernel's."""
        return _median(self.baseline_us) / _median(self.kernel_us)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval of the speedup."""
        return speedup_interval(
            self.kernel, self.baseline, self.empty, self.per_round, self._spare_share
        )

    @property
    def rounds(self) -> list[Walls]:
        """Return the rounds of the reference, each by itself."""
        starts = range(0, len(self.baseline), self.per_round)
        return [
            replace(self, baseline=self.baseline[at:end], empty=self.empty[at:end])
            for at, end in ((start, start + self.per_round) for start in starts)
        ]

    def against(self, alone: Walls) -> Walls:
        """Return the kernel's batches with those of the reference that were made `alone`."""
        return replace(self, baseline=alone.baseline, empty=alone.empty)

    def beside(self, alone: Walls) -> Walls:
        """Return the same, as many as there are of both; of those made alone the last ones."""
        count = min(len(self.kernel), len(alone.baseline))
        return replace(
            self,
            kernel=self.kernel[:count],
            baseline=alone.baseline[-count:],
            empty=alone.empty[-count:],
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
    are the score. `alone` has those of the reference, of the kind that is scored, that were made
    when the submission had ended; `single_alone` its single calls, where others are scored.
    `rank_us` and `baseline_rank_us` have what ranks say of themselves, by scored batch (or call).
    """

    batches: Walls
    single: Walls
    warmup_calls: int = 0
    is_open: bool = False
    alone: Walls | None = None
    single_alone: Walls | None = None
    rank_us: list[list[float]] = field(default_factory=list)
    baseline_rank_us: list[list[float]] = field(default_factory=list)

    @property
    def scored(self) -> Walls:
        """Return what is the score: batches, or single calls where inputs of a batch are open, and
        where they suggest that calls inside a batch were merged. A kernel that needs all inputs at
        once gains nothing from getting them one by one."""
        return self.fair_single if self.is_open or is_suspect(self) else self.batches

    @property
    def fair_single(self) -> Walls:
        """Return single calls; with those of the reference alone where even the slow ones of these
        show that it was disturbed beside the submission. There is one round of them."""
        if self.single_alone is None:
            return self.single
        alone = self.single.against(self.single_alone)
        *_, slow_us = statistics.quantiles(alone.baseline_us, n=4)
        if self.single.speedup <= DISTURBED_RATIO * slow_us / _median(alone.kernel_us):
            return self.single
        return replace(self.single.beside(self.single_alone), per_round=1)

    @property
    def is_disturbed(self) -> bool:
        """Return whether the reference was a quarter faster, or its empty batches told a time at
        last, when the submission had ended: then what it did beside it is no measure."""
        if self.fair_single is not self.single and is_suspect(self):
            return True
        return self.alone is not None and _is_disturbed(self.scored, self.alone)

    @property
    def is_settled(self) -> bool:
        """Return whether the rounds alone exclude a disturbance: none of them shows one by itself.
        The fastest of four is faster than most would be in 15 of 16 cases."""
        if self.alone is None:
            return False
        scored = self.scored
        return not any(_is_disturbed(scored, own) for own in (self.alone, *self.alone.rounds))

    def add_rank_times(self, is_kernel: bool, rank_ns: Sequence[float], calls: int) -> None:
        """Add what the ranks say of these calls; untrusted, so cut to a sane number."""
        told = self.rank_us if is_kernel else self.baseline_rank_us
        told.append([min(ns, MAX_RANK_NS) / 1e3 / calls for ns in rank_ns])


def summarise(samples: Samples) -> tuple[Timing, tuple[str, ...]]:
    """Return the timing and its flags."""
    batches, scored = samples.batches, samples.scored
    is_of_batches = scored is batches
    if samples.alone and samples.is_disturbed:
        scored = scored.beside(samples.alone)
    shown = scored if is_of_batches or not batches.kernel else batches
    single = samples.single if is_of_batches else scored
    rank_us = tuple(statistics.median(own) for own in zip(*samples.rank_us, strict=True))
    last = [own.index(max(own)) for own in samples.rank_us]
    low, high = scored.interval
    timing = Timing(
        kernel_us=_median(scored.kernel_us),
        baseline_us=_median(scored.baseline_us),
        speedup=scored.speedup,
        speedup_low=min(low, scored.speedup),
        speedup_high=max(high, scored.speedup),
        kernel_single_us=_median(single.kernel_us),
        baseline_single_us=_median(single.baseline_us),
        empty_us=shown.empty_us,
        burst_calls=shown.calls,
        warmup_calls=samples.warmup_calls,
        timed_calls=len(shown.kernel) * shown.calls,
        kernel_bursts_us=tuple(round(us, 3) for us in shown.kernel_us),
        baseline_bursts_us=tuple(round(us, 3) for us in shown.baseline_us),
        rank_us=rank_us,
        rank_last=tuple(last.count(rank) for rank in range(len(rank_us))),
        kernel_events_us=_slowest_mean(samples.rank_us),
        baseline_events_us=_slowest_mean(samples.baseline_rank_us),
    )
    least_us = 0.0 if samples.is_open else ADVISORY_RATIO * _median(batches.kernel_us)
    found = {
        "open_bursts": samples.is_open,
        "superbatch_suspect": not (is_of_batches or samples.is_open),
        "reference_disturbed": samples.is_disturbed,
        "noisy_host": _is_noisy(_by_round(scored.baseline_us, scored.per_round)),
        "timing_mismatch": max(rank_us, default=least_us) < least_us,
    }
    return timing, tuple(flag for flag, is_found in found.items() if is_found)


def lost_in_noise(samples: Samples) -> str | None:
    """Return that no speedup can be told, and why, where empty batches scatter too much both beside
    the submission and without it; None where one can."""
    scored = samples.scored
    found = scatter_of_empty(scored)
    if found is None or samples.is_disturbed:
        return None
    own = _median(scored.kernel_us) * scored.calls
    return f"no speedup is told: empty batches scatter by {found:.0f} us, calls take {own:.0f}"


def scatter_of_empty(walls: Walls) -> float | None:
    """Return by how many microseconds rounds of empty batches scatter, if that is more than the
    kernel's own calls take."""
    scatter = spread_of_empty(walls)
    return scatter if scatter > _median(walls.kernel_us) * walls.calls else None


def spread_of_empty(walls: Walls) -> float:
    """Return by how much rounds of empty batches scatter; 0 where there are too few to tell."""
    empty = _by_round(walls.empty, walls.per_round)
    return _spread(empty) if len(empty) >= SPREAD_ROUNDS else 0.0


def _is_disturbed(scored: Walls, alone: Walls) -> bool:
    if scatter_of_empty(scored) is not None:
        return scatter_of_empty(scored.against(alone)) is None
    return scored.speedup > DISTURBED_RATIO * scored.against(alone).speedup


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
    batches, single = samples.batches, samples.fair_single
    return _looks_merged(batches, single) or _is_faster_only_together(batches, single)


def may_hide_merging(samples: Samples) -> bool:
    """Return whether a kernel would be suspect if single calls of the reference were as fast as
    those in batches: then it has to be known whether they were slowed down."""
    if samples.is_open or is_suspect(samples):
        return False
    single, usual_us = samples.single, _median(samples.batches.baseline_us)
    fast = replace(single, baseline=[single.empty_us + usual_us])
    return is_suspect(replace(samples, single=fast))


def _is_faster_only_together(batches: Walls, single: Walls) -> bool:
    """Return whether a kernel beats the reference in batches, and not when its calls come one by
    one, where it loses more than the reference by a time that noise hardly explains."""
    if single.gain_us > 0 or batches.gain_us - single.gain_us <= ONLY_TOGETHER_US:
        return False
    low, _ = batches.interval
    return low > 1


def _looks_merged(batches: Walls, single: Walls) -> bool:
    """Return whether a kernel loses far more than the reference when its calls come one by one, in
    proportion and in time: a launch that nothing hides costs the shortest kernels most."""
    kernel, alone = _median(batches.kernel_us), _median(single.kernel_us)
    usual, usual_alone = _median(batches.baseline_us), _median(single.baseline_us)
    in_proportion = alone / kernel > MERGED_CALLS_RATIO * max(1.0, usual_alone / usual)
    return in_proportion and alone - kernel > max(0.0, usual_alone - usual) + MERGED_CALLS_US
