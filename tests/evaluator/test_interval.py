"""How often the interval of a speedup holds the truth."""

from __future__ import annotations

import random

import pytest

from evaluator.timing.interval import PROCESS_SHARE, speedup_interval

TRIES = 400


def _covered(rounds: int, scatter: float) -> float:
    """The share of made-up kernels, as fast as their baseline, whose interval holds 1.0x."""
    chooser = random.Random(rounds)
    held = 0
    for _ in range(TRIES):
        faster = 1 + chooser.gauss(0, PROCESS_SHARE)
        kernel = [100 * chooser.gauss(1, scatter) for _ in range(rounds)]
        baseline = [100 * faster * chooser.gauss(1, scatter) for _ in range(rounds)]
        low, high = speedup_interval(kernel, baseline)
        held += low <= 1 <= high
    return held / TRIES


@pytest.mark.parametrize("rounds", [3, pytest.param(7, marks=pytest.mark.similar), 15])
@pytest.mark.parametrize("scatter", [0.0, pytest.param(0.02, marks=pytest.mark.similar), 0.15])
def test_it_holds_the_truth_about_as_often_as_it_says(rounds: int, scatter: float) -> None:
    assert 0.91 <= _covered(rounds, scatter) <= 0.99


def test_it_is_as_narrow_as_processes_differ_where_rounds_do_not() -> None:
    low, high = speedup_interval([50.0] * 15, [100.0] * 15)
    assert low == pytest.approx(2.0 / (1 + 1.96 * PROCESS_SHARE), rel=0.002)
    assert high == pytest.approx(2.0 * (1 + 1.96 * PROCESS_SHARE), rel=0.002)


def test_two_rounds_say_little() -> None:
    low, high = speedup_interval([100.0, 104.0], [100.0, 101.0])
    assert low < 0.9
    assert high > 1.1


def test_what_slows_both_sides_of_a_round_does_not_widen_it() -> None:
    slower = [1.0, 1.5, 1.1, 2.0, 1.2, 1.3, 1.9]
    together = speedup_interval([100 * s for s in slower], [200 * s for s in slower])
    apart = speedup_interval([100 * s for s in slower], [200 * s for s in reversed(slower)])
    assert together[1] - together[0] < 0.5 * (apart[1] - apart[0])
