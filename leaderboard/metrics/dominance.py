"""Finds the problem that dominates a geometric mean of speedups. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Self

# A problem dominates a mean that is more than this share greater or less without the problem.
LEAST_CHANGE = 0.1


class Dominant(NamedTuple):
    """Holds a problem, the speedup there, and what the geometric mean is `without` the problem."""

    problem: int
    speedup: float
    without: float

    @classmethod
    def of(cls, stored: Mapping[str, float] | None) -> Self | None:
        """Return what was stored by `_asdict`."""
        if stored is None:
            return None
        return cls(int(stored["problem"]), stored["speedup"], stored["without"])


def dominant(logs: Mapping[int, float]) -> Dominant | None:
    """Return the problem that changes the geometric mean most when it is left out, by the logarithm
    of each problem's speedup. None where that changes the mean by at most LEAST_CHANGE, and for a
    single problem, which has no mean without it."""
    if len(logs) < 2:
        return None
    total = math.fsum(logs.values())
    mean = total / len(logs)
    problem = max(logs, key=lambda number: abs(logs[number] - mean))
    without = (total - logs[problem]) / (len(logs) - 1)
    if abs(without - mean) <= math.log1p(LEAST_CHANGE):
        return None
    return Dominant(problem, math.exp(logs[problem]), math.exp(without))
