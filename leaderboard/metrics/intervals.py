"""Says how sure a share of problems is. Pure."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

Z_95 = 1.959963984540054


class Interval(NamedTuple):
    low: float
    high: float


@functools.lru_cache(maxsize=4096)
def wilson_interval(share: float, n: int) -> Interval | None:
    """Return the 95 % score interval of a share of n problems.

    Problems with several attempts have values between 0 and 1 and so at most the variance of a
    coin: for them the interval is wider than it need be, never narrower.
    """
    if not n:
        return None
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"a share lies between 0 and 1, not {share}")
    spread = Z_95**2 / n
    centre = (share + spread / 2) / (1 + spread)
    half = Z_95 / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(
        low=min(share, max(0.0, centre - half)), high=max(share, min(1.0, centre + half))
    )


LEAST_SPEEDUPS = 3


def geometric_interval(log_sum: float, squares: float, n: int) -> Interval | None:
    """Return the 95 % interval of a geometric mean over n problems, by Student's t of their
    logarithms, of which the sum and the sum of the squares are given; None for fewer than three."""
    if n < LEAST_SPEEDUPS:
        return None
    mean = log_sum / n
    variance = max(0.0, squares - n * mean * mean) / (n - 1)
    half = student_95(n - 1) * math.sqrt(variance / n)
    return Interval(low=math.exp(mean - half), high=math.exp(mean + half))


def student_95(freedom: int) -> float:
    """Return the two-sided 95 % point of Student's t by Cornish and Fisher's series (Abramowitz and
    Stegun 26.7.5): from two degrees of freedom on it is at most 1 % too small."""
    z, n = Z_95, freedom
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / n**power for power, term in enumerate(terms, start=1))
