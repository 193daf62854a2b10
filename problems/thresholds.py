"""Say which elements of an answer a threshold can be set on, and how far from the truth it lies.

Thresholds that a right answer stays on one side of spell the key to the next call's inputs.
"""

from __future__ import annotations

from torch import Tensor, maximum

from problems.comparison import limits
from problems.spec import Tolerance

_FARTHER = 4.0  # than the tolerance lets an answer be from the truth
_LEAST_SHARE = 2.0**-10
_SMALL = 0.1  # of the root mean square: less may be an element that is always zero


def usable(values: Tensor, usual: float) -> Tensor:
    """Return which of these true values a threshold can be set on; `usual` is their root mean
    square."""
    return values.isfinite() & (values.abs() > _SMALL * usual)


def distances(values: Tensor, tolerance: Tolerance, usual: float) -> Tensor:
    """Return how far from each of these true values its threshold lies, on either side."""
    allowed = limits(values, tolerance, 1.0 if tolerance.absolute else usual)
    return maximum(_FARTHER * allowed, _LEAST_SHARE * values.abs())
