"""Adds up fast_p ahead, for every threshold that a board may ask for. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple

from leaderboard.metrics.scores import Attempts, chance_gains

MOST_P, STEPS_OF_P = 4, 20
THRESHOLDS = tuple(step / STEPS_OF_P for step in range(MOST_P * STEPS_OF_P + 1))
# Below what distinguishes two scores; a sum in full would be twice as long.
DIGITS = 9


class Fast(NamedTuple):
    """Holds the part of Sums that depends on p."""

    fast_at_1: float
    fast_at_k: float
    likely_fast_at_1: float
    faster: int
    likely_faster: int


def curves(results: Iterable[Attempts], k: int) -> dict[str, list[float]]:
    """Return for each field of Fast its value at each of THRESHOLDS, of results at different
    problems; in one go over the kernels."""
    columns = [[0.0] * (len(THRESHOLDS) + 1) for _ in Fast._fields]
    for result in results:
        for column, passed, gain in _steps(result, k):
            columns[column][passed] += gain
    sums_from = [list(accumulate(reversed(column)))[-2::-1] for column in columns]
    digits = (DIGITS, DIGITS, DIGITS, None, None)
    return {
        name: [round(value, own) for value in values]
        for name, own, values in zip(Fast._fields, digits, sums_from, strict=True)
    }


def _steps(result: Attempts, k: int) -> Iterator[tuple[int, int, float]]:
    """Yield for each correct attempt a column of Fast, how many thresholds it passes, and what it
    adds to the column at those."""
    sure, likely = (
        [bisect_left(THRESHOLDS, speedup) for speedup in sorted(speedups, reverse=True)]
        for speedups in (result.sure, result.speedups)
    )
    at_1, at_k = (chance_gains(result.made, result.correct, drawn) for drawn in (1, k))
    one = repeat(1.0)
    pairs = ((sure, at_1), (sure, at_k), (likely, at_1), (sure, one), (likely, one))
    for column, (passed, gains) in enumerate(pairs):
        yield from zip(repeat(column), passed, gains, strict=False)


def at(p: float, stored: Mapping[str, Sequence[Any]]) -> Fast:
    """Return what `curves` made, at one of THRESHOLDS."""
    place = round(p * STEPS_OF_P)
    return Fast(**{name: stored[name][place] for name in Fast._fields})
