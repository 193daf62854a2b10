"""fast_p for every threshold that a board may ask for, added up ahead. Pure."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from leaderboard.scores import Attempts, chance_gains

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


def fast_above(results: Sequence[Attempts], k: int) -> list[Fast]:
    """At each of THRESHOLDS, in one go over the kernels."""
    gains = [[0.0] * (len(THRESHOLDS) + 1) for _ in Fast._fields]
    at_1, at_k, likely_at_1, faster, likely = gains
    for result in results:
        by_one = 1 / result.made
        for low, gain in zip(
            sorted(result.sure, reverse=True),
            chance_gains(result.made, result.correct, k),
            strict=True,
        ):
            above = bisect_left(THRESHOLDS, low)
            at_1[above] += by_one
            at_k[above] += gain
            faster[above] += 1
        for speedup in result.speedups:
            above = bisect_left(THRESHOLDS, speedup)
            likely_at_1[above] += by_one
            likely[above] += 1
    sums_from = [list(accumulate(reversed(column)))[-2::-1] for column in gains]
    # Rounding must not make a share of more than all.
    most = float(len(results))
    shares = [[min(value, most) for value in column] for column in sums_from[:3]]
    return list(map(Fast._make, zip(*shares, *sums_from[3:], strict=True)))


def pack(results: Sequence[Attempts], k: int) -> bytes:
    return b"".join(RECORD.pack(*found) for found in fast_above(results, k))


def place_of(p: float) -> int:
    """Where the record of a threshold begins in what was packed, counted from 0."""
    return round(p * STEPS_OF_P) * RECORD.size


def unpack(record: bytes | memoryview) -> Fast:
    at_1, at_k, likely_at_1, faster, likely_faster = RECORD.unpack(record)
    return Fast(at_1, at_k, likely_at_1, int(faster), int(likely_faster))
