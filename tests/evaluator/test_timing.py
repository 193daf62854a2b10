"""Speedups, intervals and the flags that samples raise."""

from __future__ import annotations

import pytest

from evaluator.timing import Samples, enough, speedup_interval, summarise


def samples(kernel_us: float, baseline_us: float, single_us: float | None = None) -> Samples:
    noise = [0.98, 1.0, 1.02, 0.99, 1.01, 1.0, 1.0, 0.97, 1.03]
    return Samples(
        kernel_us=[kernel_us * n for n in noise],
        baseline_us=[baseline_us * n for n in reversed(noise)],
        kernel_single_us=[(single_us or kernel_us) * n for n in noise],
        baseline_single_us=[baseline_us * n for n in noise],
        warmup_calls=512,
        rank_us=[[kernel_us, kernel_us * 0.9]],
    )


def test_a_kernel_twice_as_fast_scores_two() -> None:
    timing, flags = summarise(samples(50.0, 100.0), 16)
    assert timing.speedup == pytest.approx(2.0)
    assert timing.speedup_low > 1.9
    assert timing.speedup_high < 2.1
    assert timing.distinguishable
    assert timing.timed_calls == 9 * 16
    assert flags == ()


def test_the_same_time_is_not_distinguishable_from_one() -> None:
    timing, _ = summarise(samples(100.0, 100.0), 16)
    assert not timing.distinguishable


def test_the_interval_narrows_with_samples() -> None:
    few, many = samples(50.0, 100.0), samples(50.0, 100.0)
    many.kernel_us *= 20
    many.baseline_us *= 20
    low, high = speedup_interval(few.kernel_us, few.baseline_us)
    tight_low, tight_high = speedup_interval(many.kernel_us, many.baseline_us)
    assert tight_high - tight_low < high - low


def test_merged_calls_are_flagged_and_scored_one_by_one() -> None:
    timing, flags = summarise(samples(10.0, 100.0, single_us=80.0), 16)
    assert "superbatch_suspect" in flags
    assert timing.speedup == pytest.approx(100.0 / 80.0)


def test_pipelining_that_the_reference_shares_is_not_flagged() -> None:
    own = samples(50.0, 100.0, single_us=160.0)
    own.baseline_single_us = [320.0] * 9
    assert summarise(own, 16)[1] == ()


def test_a_rank_that_claims_far_too_little_time_is_flagged() -> None:
    own = samples(50.0, 100.0)
    own.rank_us = [[1.0, 2.0], [2.0, 1.0]]
    assert "timing_mismatch" in summarise(own, 16)[1]


@pytest.mark.parametrize(
    ("calls", "elapsed_s", "expected"),
    [(16, 0.1, False), (1000, 0.1, False), (16, 10.0, False), (112, 0.6, True), (16, 31.0, True)],
)
def test_a_timed_phase_has_both_calls_and_time(
    calls: int, elapsed_s: float, expected: bool
) -> None:
    assert enough(calls, elapsed_s) is expected
