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
