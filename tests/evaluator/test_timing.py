"""Speedups, intervals and the flags that times raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from evaluator.timing import pace
from evaluator.timing.pace import enough, race_calls, race_series, round_calls
from evaluator.timing.timing import LEAST_US, Baseline, Times, held_to, summarise

NOISE = [0.98, 1.0, 1.02, 0.99, 1.01, 1.0, 1.0, 1.0] * 8
EMPTY_US = 5.0


def times(us: float, *, eager_us: float | None = None, series_us: float | None = None) -> Times:
    """Return calls that take so long, and what surrounds them."""
    return Times(
        calls=[EMPTY_US + us * n for n in NOISE],
        empty=[EMPTY_US] * len(NOISE),
        eager=[EMPTY_US + (eager_us or 10 * us)] * 8,
        series=[1.0 + (series_us or us)],
        empty_series=[1.0],
        ahead=[True] * len(NOISE),
        warmup_calls=64,
    )


def alone(us: float, **how: float) -> Baseline:
    """Return a reference that takes as long before as after."""
    return Baseline(before=times(us, **how), after=times(us, **how))


def test_a_kernel_twice_as_fast_scores_two() -> None:
    timing, flags = summarise(times(50.0), alone(100.0), subtracts_empty=True)
    assert timing.speedup == pytest.approx(2.0)
    assert 1.8 < timing.speedup_low < 1.95
    assert 2.05 < timing.speedup_high < 2.2
    assert timing.distinguishable
    assert (timing.timed_calls, len(timing.baseline_bursts_us)) == (64, 128)
    assert timing.ahead == 1.0
    assert flags == ()


def test_the_same_time_is_not_distinguishable_from_one() -> None:
    timing, _ = summarise(times(100.0), alone(100.0), subtracts_empty=True)
    assert not timing.distinguishable


def test_what_surrounds_a_call_is_taken_off_both_sides_by_the_reference_s_measure() -> None:
    kernel = replace(times(50.0), empty=[40.0] * 8, empty_series=[40.0])
    timing, _ = summarise(kernel, alone(100.0), subtracts_empty=True)
    assert [timing.kernel_us, timing.baseline_us] == pytest.approx([50.0, 100.0])
    assert [timing.before_us, timing.after_us] == pytest.approx([100.0, 100.0])
    assert timing.empty_us == EMPTY_US
    assert timing.kernel is not None
    assert timing.kernel.call_us == pytest.approx(500.0)
    assert timing.kernel.series_us == pytest.approx(50.0)
    plain, _ = summarise(kernel, alone(100.0), subtracts_empty=False)
    assert [plain.kernel_us, plain.baseline_us] == pytest.approx([55.0, 105.0])
    assert plain.empty_us == 0.0


def test_a_call_that_ends_before_an_empty_one_still_has_a_time() -> None:
    kernel = replace(times(50.0), calls=[EMPTY_US / 2] * 64)
    timing, _ = summarise(kernel, alone(100.0), subtracts_empty=True)
    assert timing.kernel_us == LEAST_US
    assert set(timing.kernel_bursts_us) == {LEAST_US}


def test_a_call_that_is_too_short_by_no_more_than_the_resolution_takes_the_least() -> None:
    timing, _ = summarise(times(3.0), alone(100.0), subtracts_empty=True)
    held = held_to(timing, 4.0)
    assert held.kernel is not None
    assert (held.kernel_us, held.kernel.answer_us, held.speedup) == (4.0, 4.0, 25.0)
    assert set(held.kernel_bursts_us) == {4.0}
    assert held.speedup_low <= 25.0 <= held.speedup_high


def test_times_that_differ_by_less_than_empty_calls_scatter_are_not_distinguishable() -> None:
    blurred = replace(times(15.0), empty=[EMPTY_US, EMPTY_US + 12.0] * 32)
    timing, _ = summarise(times(10.0), Baseline(before=blurred), subtracts_empty=False)
    assert timing.resolution_us == pytest.approx(12.0)
    assert timing.speedup_low < 1 < timing.speedup < timing.speedup_high
    sharp, _ = summarise(times(10.0), Baseline(before=times(15.0)), subtracts_empty=False)
    assert sharp.speedup_low > 1.2


def test_a_reference_that_is_the_same_before_and_after_is_one_sample() -> None:
    found = Baseline(before=times(100.0), after=times(102.0)).times
    assert len(found.calls) == 2 * len(NOISE)
    assert Baseline(before=times(100.0)).times.calls == times(100.0).calls


@pytest.mark.parametrize(("before_us", "after_us"), [(100.0, 160.0), (160.0, 100.0)])
def test_of_a_reference_that_drifts_the_faster_time_counts(
    before_us: float, after_us: float
) -> None:
    drifted = Baseline(before=times(before_us), after=times(after_us), is_drifted=True)
    timing, flags = summarise(times(50.0), drifted, subtracts_empty=True)
    assert timing.speedup == pytest.approx(2.0)
    assert "baseline_drifted" in flags
    assert [timing.before_us, timing.after_us] == pytest.approx([before_us, after_us])


def test_medians_agree_within_three_percent_or_the_resolution() -> None:
    assert times(100.0).agrees_with(times(102.9))
    assert not times(100.0).agrees_with(times(104.0))
    blurred = replace(times(100.0), empty=[EMPTY_US, EMPTY_US + 10.0] * 32)
    assert times(104.0).agrees_with(blurred)
    assert blurred.agrees_with(times(104.0))


@pytest.mark.parametrize(
    ("eager_us", "series_us", "is_flagged"),
    [(500.0, 50.0, False), (500.0, 100.0, True), (1000.0, 50.0, False), (1000.0, 100.0, True)],
)
def test_a_score_that_calls_back_to_back_do_not_support_is_flagged(
    eager_us: float, series_us: float, is_flagged: bool
) -> None:
    kernel = times(50.0, eager_us=eager_us, series_us=series_us)
    baseline = alone(100.0, eager_us=1000.0, series_us=100.0)
    _, flags = summarise(kernel, baseline, subtracts_empty=True)
    assert ("times_disagree" in flags) is is_flagged


def test_calls_with_nothing_else_to_compare_disagree_with_nothing() -> None:
    single = Times(calls=[50.0] * 8)
    timing, flags = summarise(
        single, Baseline(before=Times(calls=[100.0] * 8)), subtracts_empty=False
    )
    assert flags == ()
    assert (timing.ahead, timing.after_us) == (None, None)


def _slower(at: int) -> float:
    return 1.0 + at / 64


def _by_quarters(at: int) -> float:
    return 1.3 if at // 16 in (1, 3) else 1.0


def _steady(at: int) -> float:
    return 1.3 if at % 2 else 1.0


@pytest.mark.parametrize(
    ("factor", "is_noisy"), [(_slower, True), (_by_quarters, True), (_steady, False)]
)
def test_a_reference_that_varies_from_quarter_to_quarter_shows_a_noisy_host(
    factor: Callable[[int], float], is_noisy: bool
) -> None:
    varied = replace(times(100.0), calls=[100.0 * factor(at) for at in range(64)])
    _, flags = summarise(times(50.0), Baseline(before=varied), subtracts_empty=False)
    assert ("noisy_host" in flags) is is_noisy
    own = replace(times(50.0), calls=[50.0 * factor(at) for at in range(64)])
    assert summarise(own, alone(100.0), subtracts_empty=False)[1] == ()


@pytest.mark.parametrize(
    ("calls", "watched", "elapsed_s", "expected"),
    [
        (pace.TIMED_CALLS - 1, 99, 0.1, False),
        (pace.TIMED_CALLS, pace.LEAST_WATCHED, 0.1, True),
        (pace.TIMED_CALLS, pace.LEAST_WATCHED - 1, 0.1, False),
        (pace.LEAST_CALLS - 1, 99, 100.0, False),
        (pace.LEAST_CALLS, pace.LEAST_CALLS, 100.0, True),
        (pace.LEAST_CALLS, pace.LEAST_CALLS - 1, 100.0, False),
    ],
)
def test_a_timed_phase_has_its_calls_or_has_used_its_time(
    calls: int, watched: int, elapsed_s: float, expected: bool
) -> None:
    assert enough(calls, watched, elapsed_s) is expected


def test_a_round_has_as_many_calls_as_memory_allows() -> None:
    assert [round_calls(nbytes) for nbytes in (1 << 10, 64 << 20, 2 << 30, 28 << 30)] == [
        *(16, 16, 4, 1)
    ]


def test_calls_are_warmed_up_enough_and_looked_at_often_enough() -> None:
    assert pace.TIMED_CALLS >= 64
    assert pace.TIMED_CALLS >= pace.LEAST_CALLS >= 5
    assert pace.CHECK_AFTER_S < pace.SERVES_S
    assert race_calls(1 << 20) == race_series(100, 0.0) == pace.RACE_CALLS


def test_a_side_that_waits_on_the_host_in_every_call_is_waited_for_less() -> None:
    assert pace.ahead_ms() == pace.ahead_ms([False] * 7) == 30
    assert pace.ahead_ms([True] + [False] * 7) == pace.ahead_ms([False] * 9 + [True]) == 30
    assert pace.ahead_ms([True] + [False] * 8) == 10
