"""Speedups, intervals and the flags that samples raise."""

from __future__ import annotations

import pytest

from evaluator.messages.job import Device
from evaluator.timing.interval import LEAST_SHARE
from evaluator.timing.pace import PACES, enough
from evaluator.timing.timing import Samples, Walls, lost_in_noise, summarise

CALLS = 16
EMPTY_US = 300.0


def samples(
    kernel_us: float,
    baseline_us: float,
    single_us: float | None = None,
    baseline_single_us: float | None = None,
) -> Samples:
    """Batches of calls that take so long, each with what a batch costs besides."""
    noise = [0.98, 1.0, 1.02, 0.99, 1.01, 1.0, 1.0, 0.97, 1.03]
    batches = Walls(
        calls=CALLS,
        kernel=[EMPTY_US + CALLS * kernel_us * n for n in noise],
        baseline=[EMPTY_US + CALLS * baseline_us * n for n in reversed(noise)],
        empty=[EMPTY_US] * len(noise),
    )
    single = Walls(
        calls=1,
        per_round=3,
        kernel=[EMPTY_US + (single_us or kernel_us) * n for n in noise],
        baseline=[EMPTY_US + (baseline_single_us or baseline_us) * n for n in noise],
        empty=[EMPTY_US] * len(noise),
    )
    rank_us = [[kernel_us, kernel_us * 0.9]]
    return Samples(batches=batches, single=single, warmup_calls=512, rank_us=rank_us)


def test_a_kernel_twice_as_fast_scores_two() -> None:
    timing, flags = summarise(samples(50.0, 100.0))
    assert timing.speedup == pytest.approx(2.0)
    assert timing.speedup_low > 1.9
    assert timing.speedup_high < 2.1
    assert timing.distinguishable
    assert timing.timed_calls == 9 * 16
    assert flags == ()


def test_the_same_time_is_not_distinguishable_from_one() -> None:
    timing, _ = summarise(samples(100.0, 100.0))
    assert not timing.distinguishable


def test_the_interval_narrows_with_samples() -> None:
    few, many = samples(50.0, 100.0), samples(50.0, 100.0)
    for walls in (many.batches.kernel, many.batches.baseline, many.batches.empty):
        walls.extend(walls * 19)
    low, high = few.batches.interval
    tight_low, tight_high = many.batches.interval
    assert tight_high - tight_low < high - low


def test_merged_calls_are_flagged_and_scored_one_by_one() -> None:
    timing, flags = summarise(samples(10.0, 300.0, single_us=240.0))
    assert "superbatch_suspect" in flags
    assert timing.speedup == pytest.approx(300.0 / 240.0)


def test_a_kernel_that_is_faster_in_batches_alone_is_scored_one_by_one() -> None:
    timing, flags = summarise(samples(121.0, 185.0, single_us=634.0, baseline_single_us=619.0))
    assert "superbatch_suspect" in flags
    assert timing.speedup == pytest.approx(619.0 / 634.0)


@pytest.mark.parametrize("single_us", [431.0, 610.0])
def test_a_kernel_that_is_faster_alone_too_is_not(single_us: float) -> None:
    timing, flags = summarise(samples(121.0, 190.0, single_us, baseline_single_us=617.0))
    assert flags == ()
    assert timing.speedup == pytest.approx(190.0 / 121.0)


def test_a_slower_kernel_that_loses_more_alone_is_not() -> None:
    assert summarise(samples(275.0, 182.0, 807.0, baseline_single_us=579.0))[1] == ()


def test_a_short_kernel_whose_launch_nothing_hides_is_not_merged() -> None:
    assert summarise(samples(10.0, 100.0, single_us=80.0))[1] == ()


def test_pipelining_that_the_reference_shares_is_not_flagged() -> None:
    own = samples(100.0, 200.0, single_us=500.0)
    own.single.baseline = [EMPTY_US + 1000.0] * 9
    assert summarise(own)[1] == ()


def test_a_rank_that_claims_far_too_little_time_is_flagged() -> None:
    own = samples(50.0, 100.0)
    own.rank_us = [[1.0, 2.0], [2.0, 1.0]]
    assert "timing_mismatch" in summarise(own)[1]


def test_so_is_one_whose_calls_seem_to_be_merged() -> None:
    own = samples(10.0, 300.0, single_us=240.0)
    own.rank_us = [[1.0, 2.0]]
    assert summarise(own)[1] == ("superbatch_suspect", "timing_mismatch")


@pytest.mark.parametrize(
    ("batches", "elapsed_s", "expected"),
    [
        (1, 0.1, False),
        (60, 0.1, False),
        (1, 10.0, False),
        (7, 0.6, True),
        (1, 31.0, False),
        (2, 31.0, True),
    ],
)
def test_a_timed_phase_has_both_calls_and_time(
    batches: int, elapsed_s: float, expected: bool
) -> None:
    assert enough(batches, 16, elapsed_s, PACES[Device.CPU]) is expected


def test_a_batch_on_a_gpu_is_long_where_memory_allows() -> None:
    pace = PACES[Device.CUDA]
    calls = [pace.batch_calls(nbytes) for nbytes in (1 << 10, 4 << 20, 64 << 20, 2 << 30, 28 << 30)]
    assert calls == [64, 64, 16, 8, 1]


@pytest.mark.parametrize(
    ("call_us", "calls"), [(40.0, 64), (150.0, 64), (300.0, 32), (600.0, 16), (900.0, 16)]
)
def test_a_batch_need_not_be_longer_than_makes_its_beginning_small(
    call_us: float, calls: int
) -> None:
    assert PACES[Device.CUDA].long_enough(call_us) == calls
    assert PACES[Device.CPU].long_enough(call_us) == PACES[Device.CPU].many_calls


def test_what_a_batch_costs_beside_its_calls_is_taken_off_both() -> None:
    timing, _ = summarise(samples(50.0, 100.0))
    assert [timing.kernel_us, timing.baseline_us] == pytest.approx([50.0, 100.0])
    assert timing.empty_us == EMPTY_US


def test_a_batch_shorter_than_an_empty_one_still_has_a_time() -> None:
    own = samples(50.0, 100.0)
    own.batches.kernel = [200.0] * 9
    timing, _ = summarise(own)
    assert timing.kernel_us == pytest.approx(LEAST_SHARE * 200.0 / CALLS)


def test_merged_calls_are_found_where_an_empty_batch_takes_longer() -> None:
    own = samples(50.0, 700.0, single_us=800.0)
    own.batches.kernel, own.batches.empty = [1360.0] * 9, [1400.0] * 9
    timing, flags = summarise(own)
    assert "superbatch_suspect" in flags
    assert timing.speedup < 1.5


def test_the_slowest_rank_counts_in_what_ranks_say() -> None:
    own = samples(50.0, 100.0)
    own.rank_us = [[40.0, 30.0], [60.0, 30.0]]
    own.baseline_rank_us = [[90.0, 95.0], [90.0, 105.0]]
    timing, _ = summarise(own)
    assert (timing.kernel_events_us, timing.baseline_events_us) == (50.0, 100.0)


def test_it_is_counted_how_often_each_rank_is_last() -> None:
    own = samples(50.0, 100.0)
    own.rank_us = [[40.0, 30.0, 20.0], [60.0, 30.0, 60.0], [30.0, 50.0, 10.0]]
    assert summarise(own)[0].rank_last == (2, 1, 0)
    own.rank_us = []
    assert summarise(own)[0].rank_last == ()


@pytest.mark.parametrize(
    "baseline_us", [[100, 100, 160, 160, 100, 160], [120, 120, 121, 99, 100, 99]]
)
def test_a_reference_that_varies_shows_a_noisy_host(baseline_us: list[float]) -> None:
    own = samples(50.0, 100.0)
    own.batches.baseline = [EMPTY_US + CALLS * us for us in baseline_us]
    own.batches.kernel = own.batches.kernel[: len(baseline_us)]
    own.batches.empty = own.batches.empty[: len(baseline_us)]
    assert "noisy_host" in summarise(own)[1]


def test_where_inputs_are_open_single_calls_are_all_that_is_scored() -> None:
    own = samples(10.0, 300.0, single_us=240.0)
    own.batches, own.is_open = Walls(calls=CALLS), True
    timing, flags = summarise(own)
    assert flags == ("open_bursts",)
    assert timing.speedup == pytest.approx(300.0 / 240.0)
    assert (timing.kernel_us, timing.burst_calls) == (timing.kernel_single_us, 1)
    assert timing.timed_calls == len(timing.kernel_bursts_us) == len(own.single.kernel)


def test_a_batch_that_turns_out_to_be_open_is_not_scored() -> None:
    own = samples(10.0, 300.0, single_us=240.0)
    own.is_open = True
    timing, _ = summarise(own)
    assert timing.speedup == pytest.approx(300.0 / 240.0)
    assert timing.burst_calls == CALLS


@pytest.mark.parametrize("is_open", [False, True])
def test_no_speedup_is_told_where_empty_batches_scatter_by_more_than_calls_take(
    is_open: bool,
) -> None:
    own = samples(50.0, 100.0)
    own.is_open = is_open
    assert lost_in_noise(own) is None
    walls = own.single if is_open else own.batches
    walls.per_round = 1
    walls.empty = [EMPTY_US + walls.calls * us for us in (0, 0, 0, 60, 60, 60, 120, 120, 120)]
    assert "scatter" in (lost_in_noise(own) or "")


def test_a_reference_that_is_faster_once_the_submission_has_ended_is_the_score() -> None:
    own, calm = samples(50.0, 100.0), samples(50.0, 60.0)
    own.alone = calm.batches
    timing, flags = summarise(own)
    assert "reference_disturbed" in flags
    assert timing.speedup == pytest.approx(1.2)
    assert timing.speedup_high < 1.5


@pytest.mark.parametrize("alone_us", [81.0, 100.0, 300.0])
def test_one_that_is_hardly_faster_or_slower_then_is_not(alone_us: float) -> None:
    own = samples(50.0, 100.0)
    own.alone = samples(50.0, alone_us).batches
    timing, flags = summarise(own)
    assert flags == ()
    assert timing.speedup == pytest.approx(2.0)


def test_few_batches_alone_are_compared_with_as_many_of_the_kernel() -> None:
    own, calm = samples(50.0, 100.0), samples(50.0, 60.0).batches
    own.alone = Walls(calls=CALLS, baseline=calm.baseline[:4], empty=calm.empty[:4])
    timing, _ = summarise(own)
    assert timing.speedup == pytest.approx(1.2, rel=0.02)
    assert len(timing.kernel_bursts_us) == len(timing.baseline_bursts_us) == 4


def test_empty_batches_that_scatter_only_beside_the_submission_are_its_doing() -> None:
    own = samples(50.0, 100.0)
    own.batches.empty = [CALLS * us for us in (0.0, 0, 0, 60, 60, 60, 120, 120, 120)]
    own.alone = own.batches
    assert "scatter" in (lost_in_noise(own) or "")
    own.alone = samples(50.0, 100.0).batches
    assert lost_in_noise(own) is None
    timing, flags = summarise(own)
    assert "reference_disturbed" in flags
    assert timing.speedup == pytest.approx(2.0)


def test_empty_batches_that_scatter_widen_the_interval() -> None:
    own, steady = samples(50.0, 100.0), samples(50.0, 100.0)
    own.batches.empty = [us + 40 * at for at, us in enumerate(own.batches.empty, start=-4)]
    low, high = own.batches.interval
    steady_low, steady_high = steady.batches.interval
    assert high - low > 1.2 * (steady_high - steady_low)


def test_a_slow_start_that_empty_batches_share_is_no_part_of_a_call() -> None:
    slow_start, spare, beside = 400.0, 4, EMPTY_US
    own = samples(50.0, 100.0)
    walls = own.batches
    walls.spare = spare
    walls.kernel = [slow_start + us for us in walls.kernel]
    walls.baseline = [slow_start + us for us in walls.baseline]
    walls.empty = [slow_start + beside + spare * 100.0] * len(walls.kernel)
    timing, _ = summarise(own)
    assert [timing.kernel_us, timing.baseline_us] == pytest.approx([50.0, 100.0])
    assert timing.empty_us == pytest.approx(slow_start + beside)
    assert timing.speedup_low < 2.0 < timing.speedup_high < 2.2
