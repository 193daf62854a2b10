"""Outputs against their oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import problems
from problems import comparison
from problems.comparison import compare, forgiven, rms
from problems.spec import EXACT, UPSTREAM_TOLERANCE, Tolerance

LOOSE = Tolerance(atol=0.1, rtol=0.0)


def wide(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_an_error_counts_in_units_of_the_tolerance() -> None:
    expected = wide(3.0, -3.0, 3.0)  # rms 3, so the limit is 0.3
    found = compare(torch.tensor([3.15, -3.0, 3.0]), expected, LOOSE)
    assert (found.mismatched, found.elements, found.ok) == (0, 3, True)
    assert found.max_error == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("chunk", [2, 1 << 22])
def test_an_element_as_near_as_the_reference_is_gets_its_value(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", chunk)
    got = torch.tensor([[1.0, 1.2, 0.7], [1.5, float("nan"), 1.0]])
    reference = torch.tensor([[1.3, 1.3, 1.2], [1.5, 1.0, float("inf")]])
    found = forgiven(got, reference, wide(1, 1, 1, 1, 1, 1).view(2, 3))
    expected = torch.tensor([[1.3, 1.3, 0.7], [1.5, float("nan"), float("inf")]])
    assert torch.equal(found.nan_to_num(-1.0), expected.nan_to_num(-1.0))
    whole = torch.tensor([1, 2])
    assert forgiven(whole, whole + 1, whole) is whole


def test_one_element_past_the_limit_is_a_mismatch() -> None:
    found = compare(torch.tensor([3.31, -3.0, 3.0]), wide(3.0, -3.0, 3.0), LOOSE)
    assert found.mismatched == 1
    assert found.max_error == pytest.approx(0.31 / 0.3, rel=1e-5)


@pytest.mark.parametrize(
    ("elements", "errors", "mismatched"),
    [
        (1_000_000, [1.9], 0),
        (999_999, [1.9], 1),
        (1_999_999, [1.1, 1.1], 2),
        (4_000_000, [1.1, 1.9], 0),
        (4_000_000, [1.1, 1.1, 1.1], 3),
        (2_000_000, [2.1], 1),
        (2_000_000, [1.1, 2.1], 2),
    ],
)
def test_one_of_a_million_elements_may_be_an_outlier(
    elements: int, errors: list[float], mismatched: int
) -> None:
    expected = torch.ones(elements, dtype=torch.float64)
    got = expected.clone()
    got[-len(errors) :] += 0.1 * wide(*errors)
    found = compare(got, expected, replace(LOOSE, outliers=2))
    assert found.max_error == pytest.approx(max(errors))
    assert (found.mismatched, found.outliers) == (mismatched, len(errors) if found.ok else 0)


def test_outliers_are_of_bfloat16_under_hardened_inputs() -> None:
    problem = problems.load(problems.find("allreduce")).problem
    found = {dtype: problem.tolerance("hardened", dtype).outliers for dtype in problem.tolerances}
    assert found == {"float32": 0, "bfloat16": 8, "float16": 0}
    assert problem.tolerance("upstream", "bfloat16").outliers == 0


def test_no_outlier_excuses_what_is_not_finite() -> None:
    expected = torch.ones(2_000_000, dtype=torch.float64)
    got = expected.clone()
    got[:2] = wide(1.11, float("nan"))
    found = compare(got, expected, replace(LOOSE, outliers=2))
    assert (found.mismatched, found.outliers, found.ok) == (1, 1, False)
    assert not compare(got[:1], expected[:1], replace(LOOSE, outliers=2)).ok


def test_the_relative_part_follows_each_element() -> None:
    tolerance = Tolerance(atol=0.0, rtol=0.01)
    found = compare(torch.tensor([100.9, 0.011]), wide(100.0, 0.01), tolerance)
    assert found.mismatched == 1


def test_the_unit_does_not_depend_on_the_scale_of_the_values() -> None:
    values = torch.randn(1000, dtype=torch.float64)
    noisy = values * 1.001 + 0.01
    errors = [compare(noisy * s, values * s, LOOSE).max_error for s in (1e-6, 1.0, 1e6)]
    assert errors == pytest.approx([errors[0]] * 3)


def test_the_published_check_is_absolute() -> None:
    expected = wide(0.0, 1000.0)
    assert compare(wide(0.009, 1009.0), expected, UPSTREAM_TOLERANCE).ok
    assert compare(wide(0.011, 1000.0), expected, UPSTREAM_TOLERANCE).mismatched == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_nonfinite_value_where_the_oracle_has_none_fails(bad: float) -> None:
    found = compare(torch.tensor([bad, 1.0]), wide(1.0, 1.0), LOOSE)
    assert (found.mismatched, found.nonfinite) == (1, 1)
    assert found.max_error == 0.0


def test_an_infinity_of_the_oracle_must_be_met() -> None:
    expected = wide(float("-inf"), 1.0)
    assert compare(torch.tensor([float("-inf"), 1.0]), expected, LOOSE).ok
    for wrong in (float("inf"), float("nan"), -1e30):
        found = compare(torch.tensor([wrong, 1.0]), expected, LOOSE)
        assert (found.mismatched, found.nonfinite) == (1, 0)


def test_nothing_finite_has_no_error_to_tell() -> None:
    found = compare(torch.full((4,), float("nan")), wide(1, 2, 3, 4), LOOSE)
    assert (found.mismatched, found.nonfinite, found.max_error) == (4, 4, None)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_integers_and_flags_are_compared_exactly(dtype: torch.dtype) -> None:
    expected = torch.tensor([1, 0, 1, 1]).to(dtype)
    assert compare(expected.clone(), expected, LOOSE).max_error == 0.0
    found = compare(torch.tensor([1, 0, 0, 1]).to(dtype), expected, LOOSE)
    assert (found.mismatched, found.max_error) == (1, None)


def test_an_output_may_be_too_rough_as_a_whole() -> None:
    expected = wide(3.0, -3.0, 3.0, 3.0)  # the limit of each is 0.3
    got = torch.tensor([3.15, -3.15, 3.15, 3.0])
    found = compare(got, expected, replace(LOOSE, rms=0.44))
    assert (found.mismatched, found.nonfinite) == (0, 0)
    assert found.rms_error == pytest.approx(0.5 * 0.75**0.5, rel=1e-5)
    assert found.ok
    rough = compare(got, expected, replace(LOOSE, rms=0.42))
    assert (rough.ok, rough.is_rough, rough.mismatched) == (False, True, 0)
    assert rough.rms_share == pytest.approx(0.433 / 0.42, rel=1e-3)
    assert not compare(got, expected, LOOSE).rms_share


def test_what_has_no_unit_has_no_root_mean_square() -> None:
    limited = replace(EXACT, rms=0.1)
    found = compare(torch.tensor([1.5, 2.0]), wide(1.0, 2.0), limited)
    assert (found.mismatched, found.rms_error, found.is_rough) == (1, None, False)
    empty = compare(torch.zeros(0), wide(), limited)
    assert (empty.ok, empty.rms_error) == (True, None)


def test_exact_floats_accept_no_error_at_all() -> None:
    expected = wide(1.0, 2.0)
    assert compare(expected.float(), expected, EXACT).ok
    nudged = torch.nextafter(expected.float(), torch.tensor(9.0))
    found = compare(nudged, expected, EXACT)
    assert (found.mismatched, found.max_error) == (2, None)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        compare(torch.zeros(2), wide(0, 0, 0), LOOSE)


def test_an_empty_output_is_right() -> None:
    found = compare(torch.zeros(0), wide(), LOOSE)
    assert (found.ok, found.elements, found.max_error) == (True, 0, None)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = torch.randn(50, 7, dtype=torch.float64)
    got = (expected + 0.05 * torch.randn(50, 7, dtype=torch.float64)).float()
    got[13, 3] = float("nan")
    whole = compare(got, expected, LOOSE)
    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", 16)
    pieces = compare(got, expected, LOOSE)
    assert pieces.max_error == pytest.approx(whole.max_error)
    assert pieces.rms_error == pytest.approx(whole.rms_error)
    unmeasured = [replace(c, max_error=None, rms_error=None) for c in (pieces, whole)]
    assert unmeasured[0] == unmeasured[1]


def test_the_root_mean_square_leaves_infinities_out() -> None:
    assert rms(wide(3.0, -4.0, float("inf"))) == pytest.approx(12.5**0.5)
    assert rms(wide(float("nan"))) == 0.0
