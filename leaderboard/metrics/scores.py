"""Scores a set of kernels as boards do: pass@k, fast_p@k, geometric mean, coverage, place.

Pure arithmetic on counts. Every share is over *all* scored problems, attempted or not, so leaving
problems out never helps; an attempt that was not made counts as one that failed.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from leaderboard.metrics.intervals import Interval, wilson_interval

Item = TypeVar("Item")

TIE_DIGITS = 9
_IS_POSITIVE = (0.0).__lt__


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """Holds what is known of one problem: attempts judged, and the speedup of each correct one.

    `lows` are the lower ends of the speedups' intervals; without them the speedups themselves
    count. `checked` are correct too, but were not timed. Raises ValueError where these contradict
    each other.
    """

    problem: int
    category: str
    made: int
    speedups: tuple[float, ...] = ()
    lows: tuple[float, ...] = ()
    checked: int = 0

    def __post_init__(self) -> None:
        if self.made < self.correct:
            raise ValueError("more correct attempts than attempts made")
        if not all(map(_IS_POSITIVE, self.speedups)):
            raise ValueError("a speedup must be positive")
        if len(self.lows) not in (0, len(self.speedups)):
            raise ValueError("a speedup has an interval, or none has")

    @property
    def correct(self) -> int:
        return len(self.speedups) + self.checked

    @property
    def sure(self) -> tuple[float, ...]:
        """Return the lower end of each speedup."""
        return self.lows or self.speedups

    def faster_than(self, p: float) -> int:
        """Count those whose whole interval lies above p: chance alone must not make one fast."""
        return sum(map(float(p).__lt__, self.sure))


# Boards make these by the hundred, and tuples are made five times as fast as dataclasses.
class Score(NamedTuple):
    """Holds one row of a board. A share is None where fewer than k samples a problem were drawn.

    Some kernels that are `likely_faster` than p are not distinguishable from it and so are not
    among the `faster` ones; `likely_fast_at_1` is fast_p@1 with them. Unless kernels are timed
    (`is_timed`) nothing is known of how fast they are.
    """

    scored: int
    attempted: int
    correct: int
    k: int
    p: float
    pass_at_1: float | None
    pass_at_1_interval: Interval | None
    pass_at_k: float | None
    fast_at_1: float | None
    fast_at_k: float | None
    geometric_mean: float | None
    likely_fast_at_1: float | None = None
    faster: int = 0
    likely_faster: int = 0
    is_timed: bool = True


@functools.lru_cache(maxsize=4096)
def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that k of n attempts, drawn without replacement, hold one of the c correct.

    Unbiased (Chen et al. 2021). Missing attempts count as failed. Raises ValueError for odd counts.
    """
    if k < 1 or not 0 <= c <= n:
        raise ValueError(f"needs k >= 1 and 0 <= c <= n, not n={n}, c={c}, k={k}")
    drawn_from = max(n, k)
    return 1.0 - math.comb(drawn_from - c, k) / math.comb(drawn_from, k)


def share_passing(results: Iterable[Attempts], scored: int, k: int) -> float | None:
    """Return pass@k over `scored` problems; None where nothing is scored."""
    return _share((pass_at_k(r.made, r.correct, k) for r in results), scored)


def share_fast(results: Iterable[Attempts], scored: int, k: int, p: float) -> float | None:
    """Return fast_p@k: correct *and* surely more than p times as fast as the reference."""
    return _share((pass_at_k(r.made, r.faster_than(p), k) for r in results), scored)


def _share(values: Iterable[float], scored: int) -> float | None:
    return math.fsum(values) / scored if scored else None


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def roofline_credit(made: int, utilisations: Sequence[float | None]) -> float | None:
    """Return the mean over the attempts at a problem of right * min(1, bound / time), where what is
    not right has 0; `utilisations` are bound / time of the right ones. None where one is not
    known."""
    known = [min(1.0, used) for used in utilisations if used is not None]
    return math.fsum(known) / made if len(known) == len(utilisations) else None


def geometric_mean_speedup(results: Iterable[Attempts]) -> float | None:
    """Average over problems with a correct kernel; each counts once, whatever its attempts."""
    per_problem = (geometric_mean(result.speedups) for result in results)
    return geometric_mean(mean for mean in per_problem if mean is not None)


class Sums(NamedTuple):
    """Adds up over problems all that a score needs besides how many of them are scored.

    `log_speedup` adds up the logarithm of each solved problem's mean speedup.
    """

    attempted: int
    correct: int
    pass_at_1: float
    pass_at_k: float
    fast_at_1: float
    fast_at_k: float
    likely_fast_at_1: float
    faster: int
    likely_faster: int
    log_speedup: float


class Counts(NamedTuple):
    """Counts attempts at a problem: made, correct, surely and likely faster than p (the latter as
    published tables do), and the mean logarithm of the speedups, None where there is none."""

    made: int
    correct: int
    faster: int
    likely_faster: int
    log_speedup: float | None


def counts(result: Attempts, p: float = 1.0) -> Counts:
    return counts_of((result.made, result.correct), result.speedups, result.sure, p)


def counts_of(
    counted: tuple[int, int], speedups: Sequence[float], sure: Sequence[float], p: float
) -> Counts:
    """Count attempts by their speedups and the lower ends (`sure`) of these; `counted` are those
    made and the correct ones."""
    is_above = float(p).__lt__
    return Counts(
        *counted,
        sum(map(is_above, sure)),
        sum(map(is_above, speedups)),
        math.fsum(map(math.log, speedups)) / len(speedups) if speedups else None,
    )


def sums(results: Iterable[Attempts], *, k: int = 1, p: float = 1.0) -> Sums:
    return sums_of(list(zip(*(counts(result, p) for result in results), strict=True)), k=k)


def sums_of(columns: Sequence[Sequence[Any]], *, k: int) -> Sums:
    """Add up the columns of Counts, each of which has a value for every problem."""
    made, right, faster, likely, logs = columns or ((),) * 5

    def total(passing: Sequence[int], drawn: int) -> float:
        return math.fsum(map(pass_at_k, made, passing, repeat(drawn)))

    return Sums(
        attempted=sum(map(bool, made)),
        correct=sum(map(bool, right)),
        pass_at_1=total(right, 1),
        pass_at_k=total(right, k),
        fast_at_1=total(faster, 1),
        fast_at_k=total(faster, k),
        likely_fast_at_1=total(likely, 1),
        faster=sum(faster),
        likely_faster=sum(likely),
        log_speedup=math.fsum(log for log in logs if log is not None),
    )


@functools.lru_cache(maxsize=4096)
def chance_gains(made: int, correct: int, k: int) -> tuple[float, ...]:
    """Return what each further correct attempt adds to pass@k, rounded so that sums are exact."""
    chances = [round(pass_at_k(made, c, k) * 2.0**40) / 2.0**40 for c in range(correct + 1)]
    return tuple(after - before for before, after in pairwise(chances))


def score(results: Sequence[Attempts], scored: int, *, k: int = 1, p: float = 1.0) -> Score:
    """Score `scored` problems of `k` attempts each; raise ValueError for too many or one twice."""
    if len({result.problem for result in results}) != len(results):
        raise ValueError("a problem may occur only once")
    if len(results) > scored:
        raise ValueError(f"{len(results)} problems have results but only {scored} are scored")
    return score_of(sums(results, k=k, p=p), scored, k=k, p=p)


def score_of(summed: Sums, scored: int, *, k: int, p: float = 1.0, is_timed: bool = True) -> Score:
    """Return the score of these sums, which were made with the same `k` and `p`. Without times
    there is none of how fast kernels are: None, never 0."""

    def share(total: float, of: int) -> float | None:
        return total / of if of else None

    passed, timed = share(summed.pass_at_1, scored), scored if is_timed else 0
    log_mean = share(summed.log_speedup, summed.correct if is_timed else 0)
    return Score(
        scored=scored,
        attempted=summed.attempted,
        correct=summed.correct,
        k=k,
        p=p,
        pass_at_1=passed,
        pass_at_1_interval=None if passed is None else wilson_interval(passed, scored),
        pass_at_k=share(summed.pass_at_k, scored),
        fast_at_1=share(summed.fast_at_1, timed),
        fast_at_k=share(summed.fast_at_k, timed),
        geometric_mean=None if log_mean is None else math.exp(log_mean),
        likely_fast_at_1=share(summed.likely_fast_at_1, timed),
        faster=summed.faster,
        likely_faster=summed.likely_faster,
        is_timed=is_timed,
    )


def fast_curve(
    results: Sequence[Attempts], scored: int, thresholds: Iterable[float], k: int = 1
) -> list[float | None]:
    """Return `share_fast` at every threshold, in one go over the kernels."""
    gains: list[tuple[float, float]] = []
    for result in results:
        fastest_first = sorted(result.sure, reverse=True)
        gains += zip(fastest_first, chance_gains(result.made, len(fastest_first), k), strict=True)
    gains.sort()
    speedups, values = [speedup for speedup, _ in gains], [gain for _, gain in gains]
    return [
        math.fsum(values[bisect_right(speedups, p) :]) / scored if scored else None
        for p in thresholds
    ]


def _rounded(value: float | None) -> float | None:
    """Round, so that numbers that differ by less are equal."""
    return None if value is None else round(value, TIE_DIGITS)


def in_order(
    rows: Iterable[Item], value: Callable[[Item], float | None], *, descending: bool = True
) -> list[Item]:
    """Sort best first and stably; rows without a value come last in either direction."""
    return known_first([(_rounded(value(row)), row) for row in rows], descending=descending)


def known_first(pairs: Sequence[tuple[Any, Item]], *, descending: bool) -> list[Item]:
    """Sort stably by what stands before each row; rows behind None come last either way."""
    known = [pair for pair in pairs if pair[0] is not None]
    known.sort(key=itemgetter(0), reverse=descending)
    return [row for _, row in known] + [row for before, row in pairs if before is None]


def places(values: Sequence[float | None], *, falls: bool = True) -> list[str | None]:
    """Return the places of values, highest first if it `falls`: "1", "2=" for a tie, None for no
    value."""
    rounded = list(map(_rounded, values))
    count = Counter(value for value in rounded if value is not None)
    place, place_of = 1, dict[float | None, str]()
    for value in sorted(count, reverse=falls):
        place_of[value] = f"{place}=" if count[value] > 1 else str(place)
        place += count[value]
    return list(map(place_of.get, rounded))
