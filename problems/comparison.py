"""Compare outputs with a float64 (or exact integer) oracle, in units of a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from problems.spec import ELEMENTS_AN_OUTLIER, OUTLIER_LIMIT, Tolerance

CHUNK_ELEMENTS = 1 << 22  # float64 temporaries of a chunk stay within 128 MiB


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Tell how far an output is off. `max_error` is in units of the tolerance (1.0 is the limit);
    None where no unit exists: exact outputs that differ, and outputs without finite elements.
    `rms_error` is the root mean square of these errors, None wherever `max_error` is; `rms_limit`
    is what the tolerance lets it be, None where that says nothing.
    `nonfinite` counts NaN and Inf where the oracle has none; they are mismatches too. `outliers`
    counts elements beyond the limit that are none: as many as the tolerance lets be, one in
    ELEMENTS_AN_OUTLIER at most, each off by up to OUTLIER_LIMIT tolerances."""

    elements: int
    mismatched: int
    nonfinite: int
    max_error: float | None
    rms_error: float | None
    rms_limit: float | None = None
    outliers: int = 0

    @property
    def ok(self) -> bool:
        return self.mismatched == 0 and not self.is_rough

    @property
    def is_rough(self) -> bool:
        """Return whether the output is off as a whole, whatever its single elements are."""
        return self.rms_share > 1.0

    @property
    def rms_share(self) -> float:
        """Return the root mean square as a share of its limit; 0.0 where there is neither."""
        return (self.rms_error or 0.0) / self.rms_limit if self.rms_limit else 0.0


def compare(got: Tensor, expected: Tensor, tolerance: Tolerance) -> Comparison:
    """Compare one output with its oracle, in chunks. Infinities of the oracle must be met exactly.
    Complex numbers count as two elements.

    Raises ValueError when shapes differ: that is a finding of its own, made before.
    """
    if got.shape != expected.shape:
        raise ValueError(f"got {tuple(got.shape)}, expected {tuple(expected.shape)}")
    got, expected = _as_reals(got), _as_reals(expected)
    if not expected.is_floating_point():
        return _compare_exactly(got, expected)
    unit = 1.0 if tolerance.absolute else rms(expected)
    beyond = mismatched = nonfinite = measured = 0
    squares = 0.0
    max_error: float | None = None
    for start in range(0, expected.numel(), CHUNK_ELEMENTS):
        part = slice(start, start + CHUNK_ELEMENTS)
        mine, truth = got[part].double(), expected[part].double()
        errors, wrong = _errors(mine, truth, tolerance, unit)
        beyond, mismatched = beyond + int((errors > 1.0).sum()), mismatched + wrong
        nonfinite += int((~mine.isfinite() & truth.isfinite()).sum())
        if errors.numel():
            max_error = max(max_error or 0.0, errors.max().item())
            squares, measured = squares + errors.square().sum().item(), measured + errors.numel()
    outliers = beyond if _are_outliers(beyond, expected.numel(), max_error, tolerance) else 0
    if max_error == inf:
        max_error = None
    rms_error = None if max_error is None else (squares / measured) ** 0.5
    return Comparison(
        elements=expected.numel(),
        mismatched=mismatched + beyond - outliers,
        nonfinite=nonfinite,
        max_error=max_error,
        rms_error=rms_error,
        rms_limit=tolerance.rms,
        outliers=outliers,
    )


def forgiven(got: Tensor, reference: Tensor, exact: Tensor) -> Tensor:
    """Return an output with the reference's value wherever its own is at least as near to the
    exact answer; all have its shape."""
    if not exact.is_floating_point() or not got.is_floating_point():
        return got
    found = got.clone()
    mine, theirs, truth = (value.reshape(-1) for value in (found, reference, exact))
    for start in range(0, len(truth), CHUNK_ELEMENTS):
        part = slice(start, start + CHUNK_ELEMENTS)
        own, other, true = mine[part].double(), theirs[part].double(), truth[part].double()
        is_near = (own - true).abs() <= (other - true).abs()
        mine[part] = torch.where(is_near, theirs[part].to(mine.dtype), mine[part])
    return found


def _are_outliers(
    beyond: int, elements: int, max_error: float | None, tolerance: Tolerance
) -> bool:
    allowed = min(tolerance.outliers, elements // ELEMENTS_AN_OUTLIER)
    return beyond <= allowed and (max_error or 0.0) <= OUTLIER_LIMIT


def limits(expected: Tensor, tolerance: Tolerance, unit: float) -> Tensor:
    """Return how far an answer may lie from each of these, in their shape.

    `unit` is 1.0 where the tolerance is absolute, else the root mean square of them all.
    """
    return tolerance.atol * unit + tolerance.rtol * expected.abs()


def rms(values: Tensor) -> float:
    """Return the root mean square of the finite values; 0.0 when there are none."""
    total, finite_elements = 0.0, 0
    for part in torch.split(values.reshape(-1), CHUNK_ELEMENTS):
        wide = part.double()  # isfinite does not know float8
        finite = wide[wide.isfinite()]
        total += finite.square().sum().item()
        finite_elements += finite.numel()
    return float((total / finite_elements) ** 0.5) if finite_elements else 0.0


def _as_reals(values: Tensor) -> Tensor:
    values = values.detach().reshape(-1)
    return torch.view_as_real(values).reshape(-1) if values.is_complex() else values


def _compare_exactly(got: Tensor, expected: Tensor) -> Comparison:
    mismatched = int((got != expected).sum())
    nonfinite = int((~got.isfinite()).sum()) if got.is_floating_point() else 0
    return Comparison(
        elements=expected.numel(),
        mismatched=mismatched,
        nonfinite=nonfinite,
        max_error=None if mismatched else 0.0,
        rms_error=None if mismatched else 0.0,
    )


def _errors(got: Tensor, expected: Tensor, tolerance: Tolerance, unit: float) -> tuple[Tensor, int]:
    """Return errors in tolerances where both are finite, and how many of the rest disagree."""
    both = got.isfinite() & expected.isfinite()
    same = (got == expected) | (got.isnan() & expected.isnan())
    got, expected = got[both], expected[both]
    limit = limits(expected, tolerance, unit)
    difference = (got - expected).abs()
    return torch.where(difference == 0, 0.0, difference / limit), int((~both & ~same).sum())
