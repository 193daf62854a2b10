"""How often the interval of a speedup holds the truth."""

from __future__ import annotations

import random

import pytest

from evaluator.timing.interval import PROCESS_SHARE, speedup_interval

TRIES = 400


def _covered(calls: int, scatter: float) -> float:
    """The share of made-up kernels, as fast as their baseline, whose interval holds 1.0x."""
    chooser = random.Random(calls)
    held = 0
    for _ in range(TRIES):
        faster = 1 + chooser.gauss(0, PROCESS_SHARE)
        kernel = [100 * chooser.gauss(1, scatter) for _ in range(calls)]
        baseline = [100 * faster * chooser.gauss(1, scatter) for _ in range(calls)]
        low, high = speedup_interval(kernel, baseline)
        held += low <= 1 <= high
    return held / TRIES


@pytest.mark.parametrize(
    ("calls", "scatter"),
    [
        *((4, 0.0), (4, 0.15), (64, 0.15)),
        *(
            pytest.param(*pair, marks=pytest.mark.similar)
            for pair in ((4, 0.02), (16, 0.0), (16, 0.02), (16, 0.15), (64, 0.0), (64, 0.02))
        ),
    ],
)
def test_it_holds_the_truth_about_as_often_as_it_says(calls: int, scatter: float) -> None:
    assert 0.91 <= _covered(calls, scatter) <= 0.99


def test_it_is_as_narrow_as_processes_differ_where_calls_do_not() -> None:
    low, high = speedup_interval([50.0] * 15, [100.0] * 15)
    assert low == pytest.approx(2.0 / (1 + 1.96 * PROCESS_SHARE), rel=0.002)
    assert high == pytest.approx(2.0 * (1 + 1.96 * PROCESS_SHARE), rel=0.002)


def test_it_narrows_with_more_calls() -> None:
    chooser = random.Random(1)
    calls = [100 * chooser.gauss(1, 0.15) for _ in range(64)]
    (low, high), (few_low, few_high) = (
        speedup_interval(own, [2 * us for us in own]) for own in (calls, calls[:8])
    )
    assert high - low < 0.7 * (few_high - few_low)


@pytest.mark.parametrize(("resolution_us", "holds_one"), [(0.0, False), (9.0, False), (11.0, True)])
def test_it_holds_one_where_medians_differ_by_less_than_the_resolution(
    resolution_us: float, holds_one: bool
) -> None:
    for kernel_us, baseline_us in ((50.0, 60.0), (60.0, 50.0)):
        low, high = speedup_interval([kernel_us] * 16, [baseline_us] * 16, resolution_us)
        assert (low <= 1 <= high) is holds_one


def test_a_resolution_beyond_the_times_themselves_still_gives_an_interval() -> None:
    low, high = speedup_interval([1.0] * 16, [2.0] * 16, 1000.0)
    assert 0 < low < 1 < high
