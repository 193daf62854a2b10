"""When a submission has ended, the reference alone tells whether it was slowed down beside it."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.judge import process, timed_phase
from evaluator.messages.job import Job
from evaluator.messages.report import Report, Verdict
from evaluator.timing.pace import ALONE_ROUNDS
from evaluator.timing.timing import Samples, Walls, may_hide_merging, summarise
from tests.evaluator.judging import judged_by
from tests.evaluator.kernel_files import named
from tests.evaluator.test_messages import REPORT

TUNED = Path(__file__).with_name("tuned_judge.py")
MUTANT = Path(__file__).with_name("mutant_judge.py")
CALLS, EMPTY_US, ROUNDS, RUNS = 16, 300.0, 8, 400


def batches(times_us: list[float]) -> Walls:
    walls = [EMPTY_US + CALLS * us for us in times_us]
    return Walls(calls=CALLS, kernel=walls, baseline=walls, empty=[EMPTY_US] * len(walls))


def single_calls(kernel_us: float, baseline_us: float) -> Walls:
    return Walls(
        calls=1,
        per_round=CALLS,
        kernel=[EMPTY_US + kernel_us] * CALLS,
        baseline=[EMPTY_US + baseline_us + at for at in range(CALLS)],
        empty=[EMPTY_US] * CALLS,
    )


def few_rounds_alone(slowed: float, scatter: float, chooser: random.Random) -> Samples:
    """A kernel as fast as the reference, which was `slowed` beside it, on a host that scatters."""

    def noisy(us: float) -> list[float]:
        return [us * chooser.lognormvariate(0.0, scatter) for _ in range(ROUNDS)]

    both = batches(noisy(100.0))
    both.baseline = batches(noisy(100.0 * slowed)).baseline
    alone = batches(noisy(100.0)[:ALONE_ROUNDS])
    return Samples(batches=both, single=single_calls(100.0, 100.0 * slowed), alone=alone)


def share_settled(slowed: float, scatter: float) -> float:
    chooser = random.Random(1)
    return sum(few_rounds_alone(slowed, scatter, chooser).is_settled for _ in range(RUNS)) / RUNS


def test_few_rounds_are_enough_where_a_host_is_quiet() -> None:
    assert share_settled(slowed=1.0, scatter=0.05) > 0.95


@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.4])
def test_few_rounds_are_not_enough_to_miss_a_reference_that_was_slowed(scatter: float) -> None:
    """By their median alone, every tenth or so is missed where times scatter by two fifths."""
    assert share_settled(slowed=2.0, scatter=scatter) < 0.005
    chooser = random.Random(1)
    missed = [not few_rounds_alone(2.0, 0.4, chooser).is_disturbed for _ in range(RUNS)]
    assert sum(missed) / RUNS > 0.02


def judged_by_batches(variation: str) -> Report:
    """Judge the all-reduce until no noise has its single calls decide."""
    for _ in range(5):
        report = judged_by(variation, named("honest", "all_reduce").job)
        if "superbatch_suspect" not in report.flags:
            return report
    return report


@pytest.mark.alone
def test_rounds_alone_that_leave_it_open_are_followed_by_as_many_as_before() -> None:
    report = judged_by_batches("disturbed")
    assert report.verdict is Verdict.OK
    assert "reference_disturbed" in report.flags
    assert report.timing is not None
    assert report.timing.speedup_low < 3


@pytest.mark.alone
@pytest.mark.similar  # what a real disturbance gives with the rounds is tried above
@pytest.mark.parametrize("mutation", ["no_reference_alone", "four_rounds_decide"])
def test_without_rounds_alone_or_by_few_of_them_a_slowed_reference_is_a_speedup(
    mutation: str,
) -> None:
    report = judged_by_batches(mutation)
    assert report.timing is not None
    assert "reference_disturbed" not in report.flags
    assert report.timing.speedup > 3


@pytest.mark.alone
def test_slow_single_calls_of_the_reference_do_not_hide_merged_ones() -> None:
    report = judged_by("disturbed_singles", named("misbehaving", "slow_one_by_one").job)
    assert {"superbatch_suspect", "reference_disturbed"} <= set(report.flags)
    assert report.timing is not None
    assert report.timing.speedup_low < 1


@pytest.mark.alone
@pytest.mark.parametrize(
    ("variation", "is_doubtful"),
    [
        ("upset_once", False),
        pytest.param("first_score_stands", True, marks=pytest.mark.similar),
    ],
)
def test_what_a_slow_moment_of_the_host_makes_doubtful_is_judged_once_more(
    variation: str, is_doubtful: bool
) -> None:
    report = judged_by_batches(variation)
    assert ("superbatch_suspect" in report.flags) is is_doubtful
    assert (process.TWICE in report.flags) is not is_doubtful


@pytest.mark.parametrize(
    ("verdict", "flags", "runs"),
    [
        (Verdict.OK, {process.DOUBTFUL, "noisy_host"}, 2),
        (Verdict.OK, {"superbatch_suspect"}, 1),
        (Verdict.FASTER_THAN_LIGHT, {process.DOUBTFUL}, 1),
    ],
)
def test_a_second_run_is_made_for_a_doubtful_score_only_and_in_processes_that_fit(
    verdict: Verdict, flags: set[str], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    secrets: set[bytes] = set()
    sent: list[Report] = []

    def judge(job: Job, emit: object, pool: object, phases: object, secret: bytes) -> Report:
        served.append(pool)
        secrets.add(secret)
        return replace(REPORT, verdict=verdict, flags=tuple(flags))

    def pool(job: Job) -> Any:
        return SimpleNamespace(fits=lambda job: False, is_free=True, close=lambda: None)

    monkeypatch.setattr(process, "judge", judge)
    monkeypatch.setattr(process, "start_pool", pool)
    channel = io.StringIO()
    monkeypatch.setattr(process, "send_report", lambda channel, report: sent.append(report))
    jobs = iter([named("honest", "all_reduce").job, None])
    monkeypatch.setattr(process, "read_job", lambda lines: next(jobs))
    monkeypatch.setattr(process, "_comes", lambda lines, within_s: True)
    process.Judge(channel).serve(channel)
    assert len({id(own) for own in served}) == len(served) == len(secrets) == runs
    assert [process.TWICE in report.flags for report in sent] == [runs == 2]


def merged(single_us: float, baseline_single_us: float) -> Samples:
    """A kernel that takes a third of the reference's time in batches."""
    both = batches([100.0] * ROUNDS)
    both.baseline = batches([300.0] * ROUNDS).baseline
    return Samples(batches=both, single=single_calls(single_us, baseline_single_us))


def test_single_calls_are_timed_alone_where_slow_ones_could_hide_merged_calls() -> None:
    assert may_hide_merging(merged(single_us=900.0, baseline_single_us=1000.0))
    assert not may_hide_merging(merged(single_us=110.0, baseline_single_us=1000.0))
    assert not may_hide_merging(merged(single_us=900.0, baseline_single_us=310.0))


def test_a_kernel_that_looks_merged_beside_single_calls_alone_is_scored_by_those() -> None:
    own = merged(single_us=900.0, baseline_single_us=1000.0)
    own.single_alone = single_calls(0.0, 320.0)
    timing, flags = summarise(own)
    assert flags == ("superbatch_suspect", "reference_disturbed")
    assert timing.speedup == pytest.approx(327.5 / 900)


@pytest.mark.parametrize("alone_us", [900.0, 5000.0])
def test_single_calls_alone_that_are_hardly_faster_or_slower_change_nothing(
    alone_us: float,
) -> None:
    own = merged(single_us=900.0, baseline_single_us=1000.0)
    own.single_alone = single_calls(0.0, alone_us)
    timing, flags = summarise(own)
    assert flags == ()
    assert timing.speedup == pytest.approx(3.0)


class Alone:
    """A reference and its oracle that note what is done, in order."""

    side = "reference"

    def __init__(self, is_relaid: bool) -> None:
        self.done: list[str] = []
        self._is_relaid = is_relaid

    def refresh(self) -> bool:
        self.done.append("renewed")
        return self._is_relaid

    def plans(self, key: str) -> str:
        return f"plans of {key}"

    def load(self, plans: str) -> None:
        self.done.append(plans)

    def shuffled_batch(self) -> tuple[int, ...]:
        return tuple(range(CALLS))

    def clear(self, key: str, side: str) -> None:
        self.done.append("cleared")

    def chain_inputs(self, *_: object, locked: bool | None = None) -> None:
        self.done.append("chained" if locked is None else "asked")

    def is_gpu_idle(self) -> bool:
        self.done.append("idle")
        return True


@pytest.mark.parametrize("is_relaid", [False, True])
def test_each_round_alone_has_fresh_inputs(
    is_relaid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Alone(is_relaid)

    def timed_batch(*_: object, made: int | None = None) -> Any:
        alone.done.append("empty" if made is not None else "timed")
        return SimpleNamespace(wall_us=100.0, skew_us=40.0)

    monkeypatch.setattr(timed_phase, "timed_batch", timed_batch)
    context: Any = SimpleNamespace(oracle=alone, reference=alone)
    walls = Walls(calls=CALLS)
    for _ in range(2):
        timed_phase._round_alone(context, walls)
    loaded = ["plans of timed"] if is_relaid else []
    once = ["renewed", *loaded, "cleared", "asked", "chained", "idle", "timed", "idle", "empty"]
    assert alone.done == 2 * once
    assert len(walls.baseline) == len(walls.empty) == 2
    assert timed_phase._noise_us(walls) == 40.0 / CALLS


def test_noise_is_how_empty_batches_scatter_and_how_far_apart_ranks_begin() -> None:
    alone = Walls(calls=CALLS, empty=[100.0, 100.0, 200.0, 200.0], skew=[10.0, 60.0, 60.0, 90.0])
    assert timed_phase._noise_us(alone) == (100.0 + 60.0) / CALLS
