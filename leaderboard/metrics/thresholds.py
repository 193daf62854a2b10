"""fast_p for every threshold that a board may ask for, added up ahead. Pure."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, repeat
from operator import add
from typing import NamedTuple

from leaderboard.metrics.scores import Attempts, chance_gains

MOST_P, STEPS_OF_P = 4, 20
THRESHOLDS = tuple(step / STEPS_OF_P for step in range(MOST_P * STEPS_OF_P + 1))


class Fast(NamedTuple):
    """What of Sums depends on p."""

    fast_at_1: float
    fast_at_k: float
    likely_fast_at_1: float
    faster: int
    likely_faster: int


RECORD = struct.Struct(f"<{len(Fast._fields)}d")
TABLE = struct.Struct(f"<{len(Fast._fields) * len(THRESHOLDS)}d")


def pack(results: Iterable[Attempts], k: int) -> bytes:
    """A record at each of THRESHOLDS, of results at different problems."""
    return changed(bytes(TABLE.size), k, added=results)


def changed(
    packed: bytes | memoryview,
    k: int,
    *,
    added: Iterable[Attempts] = (),
    removed: Iterable[Attempts] = (),
) -> bytes:
    """In one go over the kernels of these problems; those of others are not looked at. Sums are
    exact, so that nothing is left of what is removed."""
    columns = [[0.0] * (len(THRESHOLDS) + 1) for _ in Fast._fields]
    for results, sign in ((added, 1.0), (removed, -1.0)):
        for result in results:
            for column, passed, gain in _steps(result, k):
                columns[column][passed] += sign * gain
    sums_from = [list(accumulate(reversed(column)))[-2::-1] for column in columns]
    by_threshold = chain.from_iterable(zip(*sums_from, strict=True))
    return TABLE.pack(*map(add, TABLE.unpack(packed), by_threshold))


def _steps(result: Attempts, k: int) -> Iterator[tuple[int, int, float]]:
    """Of each correct attempt: a column of Fast, how many thresholds it passes, and what it adds to
    the column at those."""
    sure, likely = (
        [bisect_left(THRESHOLDS, speedup) for speedup in sorted(speedups, reverse=True)]
        for speedups in (result.sure, result.speedups)
    )
    at_1, at_k = (chance_gains(result.made, result.correct, drawn) for drawn in (1, k))
    one = repeat(1.0)
    pairs = ((sure, at_1), (sure, at_k), (likely, at_1), (sure, one), (likely, one))
    for column, (passed, gains) in enumerate(pairs):
        yield from zip(repeat(column), passed, gains, strict=False)


def place_of(p: float) -> int:
    """Where the record of a threshold begins in what was packed, counted from 0."""
    return round(p * STEPS_OF_P) * RECORD.size


def unpack(record: bytes | memoryview) -> Fast:
    at_1, at_k, likely_at_1, faster, likely_faster = RECORD.unpack(record)
    return Fast(at_1, at_k, likely_at_1, int(faster), int(likely_faster))
