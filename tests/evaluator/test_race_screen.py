"""What the race screen makes of calls back to back; `misbehaving/` and `honest/` hold kernels for
it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

import problems
from evaluator.judge import race_screen
from evaluator.judge.run_context import RunContext
from evaluator.messages.faults import Fault
from evaluator.messages.job import Device, Job, Placement
from evaluator.messages.report import OutputCheck, Phase, Verdict
from evaluator.timing.pace import RACE_CALLS, race_calls, race_series
from tests.evaluator.judging import judged, judged_by
from tests.evaluator.kernel_files import named, reference_source

RIGHT = OutputCheck(rank=0, output="out", elements=4, mismatched=0, max_error=0.5)
Checks = list[list[list[OutputCheck]]]


def checks(*wrong: tuple[int, int], verdict: Verdict = Verdict.OUTPUT_MISMATCH) -> Checks:
    """Of 2 ranks and 20 calls; `wrong` are rank and call."""

    def check(rank: int, call: int) -> OutputCheck:
        if (rank, call) not in wrong:
            return replace(RIGHT, rank=rank)
        return replace(RIGHT, rank=rank, mismatched=2, verdict=verdict)

    return [[[check(rank, call)] for call in range(RACE_CALLS)] for rank in range(2)]


@dataclass
class Side:
    """Answers series after series; a Fault is raised where the ranks would be waited for."""

    answers: list[Checks | Fault]
    told: list[dict[str, Any]] = field(default_factory=list)
    renewed_after: list[int] = field(default_factory=list)
    side: str = "submission"

    def context(self, call_s: float = 0.0) -> RunContext:
        oracle = SimpleNamespace(
            plans=lambda key: [],
            shuffled_batch=lambda: tuple(range(2, 2 + RACE_CALLS)),
            clear=lambda *given: None,
            release=lambda *given, **how: None,
            snapshot=lambda *given: None,
            check_calls=lambda *given: self.answers.pop(0),
        )
        context = SimpleNamespace(
            oracle=oracle,
            submission=self,
            job=Job(problem="allreduce", source="x", placement=Placement.SHARED),
            call_s=call_s,
            findings=SimpleNamespace(phase=Phase.VERIFY),
            emit=lambda progress: None,
            renew_timed=lambda side, calls=0: self.renewed_after.append(len(self.told)),
        )
        return cast(RunContext, context)

    @property
    def controls(self) -> list[Any]:
        return [SimpleNamespace(write_plan=self.told.append)]

    def load(self, plans: object) -> None: ...

    def arm(self) -> None: ...

    def stage(self, command: object, batch: tuple[int, ...]) -> int:
        self.told[-1]["batch"] = batch
        return 1

    def wait(self) -> None:
        if isinstance(self.answers[0], Fault):
            raise self.answers.pop(0)  # type: ignore[misc]

    def paused(self) -> Any:
        return contextlib.nullcontext()


def _fault(*answers: Checks | Fault) -> tuple[Fault, Side]:
    side = Side(list(answers))
    with pytest.raises(Fault) as caught:
        race_screen.screen_races(side.context())
    assert not side.answers
    return caught.value, side


def test_what_is_right_is_screened_without_and_with_a_late_rank() -> None:
    side = Side([checks(), checks()])
    race_screen.screen_races(side.context())
    plain, skewed = side.told
    assert plain["late"] == (None,) * RACE_CALLS
    assert set(skewed["late"]) == {0, 1}
    assert [plain["spaced"], skewed["spaced"]] == [False, False]
    assert side.renewed_after == [1]


def test_wrong_only_without_barriers_is_a_race_between_calls() -> None:
    fault, side = _fault(checks(), checks((1, 3), (1, 4), (0, 9)), checks())
    assert (fault.verdict, fault.cause) == (Verdict.OUTPUT_MISMATCH, "race_between_calls")
    assert fault.ranks == (0, 1)
    assert fault.evidence == (
        "wrong of 20 calls back to back, a rank late: rank 0: 1, rank 1: 2;"
        " with barriers between them: 0"
    )
    _, skewed, spaced = side.told
    assert spaced == {**skewed, "spaced": True}


@pytest.mark.parametrize(
    "again", [checks((0, 0)), Fault(Verdict.TIMEOUT, "deadlock", "no answer from rank 0")]
)
def test_wrong_with_barriers_too_is_wrong(again: Checks | Fault) -> None:
    fault, _ = _fault(checks((1, 3)), again)
    assert (fault.verdict, fault.cause) == (Verdict.OUTPUT_MISMATCH, "values")
    assert fault.message.startswith("calls back to back: 2 of 4 elements of out of rank 1")


@pytest.mark.parametrize(
    "verdict",
    [Verdict.LATE_OUTPUT, Verdict.INPUT_CONTRACT_BROKEN, Verdict.PROTOCOL_VIOLATION],
)
def test_other_faults_are_what_they_are(verdict: Verdict) -> None:
    fault, side = _fault(checks((0, 5), verdict=verdict))
    assert fault.verdict is verdict
    assert len(side.told) == 1


def test_garbage_read_too_late_is_a_race_as_well() -> None:
    fault, _ = _fault(checks((0, 5), verdict=Verdict.NONFINITE_OUTPUT), checks())
    assert (fault.verdict, fault.cause) == (Verdict.OUTPUT_MISMATCH, "race_between_calls")


def test_ranks_that_hang_there_are_told_so() -> None:
    fault, _ = _fault(checks(), Fault(Verdict.TIMEOUT, "deadlock", "no answer from rank 0"))
    assert fault.verdict is Verdict.TIMEOUT
    assert fault.message == "no answer from rank 0, in calls back to back, a rank late"


def test_a_series_is_as_long_as_memory_and_time_allow() -> None:
    assert race_calls(1 << 20) == RACE_CALLS
    assert race_calls(1 << 30) == 4
    assert race_calls(16 << 30) == 2
    assert race_series(RACE_CALLS, 0.0) == RACE_CALLS
    assert race_series(RACE_CALLS, 0.5) == 12
    assert race_series(RACE_CALLS, 60.0) == 6
    assert race_series(2, 60.0) == 2
    assert race_series(64, 0.0) == RACE_CALLS


def test_a_short_series_has_the_calls_whose_inputs_are_renewed() -> None:
    side = Side([checks(), checks()])
    race_screen.screen_races(side.context(call_s=60.0))
    for series in side.told:
        assert sorted(series["batch"]) == list(range(16, 22))


def test_an_ok_shared_run_was_checked_and_nothing_was_timed() -> None:
    job = replace(named("honest", "ring").job, placement=Placement.SHARED)
    report = judged(job)
    assert report.verdict is Verdict.OK, report.message
    assert report.timing is None
    assert report.placement is Placement.SHARED
    assert Phase.TIMED not in report.phase_s
    assert "nothing was timed" in report.message
    assert len(report.trials) == job.trials
    assert report.timelines  # it is profiled all the same


ONLY_WRONG_BACK_TO_BACK = """
import sys

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total + (sys._getframe(2).f_code.co_name == "make_series")
"""


def test_a_timed_run_is_always_screened() -> None:
    job = replace(named("honest", "ring").job, source=ONLY_WRONG_BACK_TO_BACK)
    report = judged(job, hurried=True)
    assert (report.verdict, report.timing) == (Verdict.OUTPUT_MISMATCH, None)
    assert report.message.startswith("calls back to back")


def test_behind_a_gate_plain_calls_are_timed_and_late_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side, timed = Side([checks()]), list[tuple[int, ...]]()

    def time_series(context: RunContext, own: object, batch: tuple[int, ...]) -> object:
        timed.append(batch)
        return 12.5, checks()

    monkeypatch.setattr(race_screen, "time_series", time_series)
    context = side.context()
    context.job = replace(context.job, placement=Placement.FULL, device=Device.CUDA)
    assert race_screen.screen_races(context) == [12.5]
    assert side.renewed_after == [0, 0]  # before the first series, and before the late one
    assert [sorted(batch) for batch in timed] == [[*range(2, 2 + RACE_CALLS)]]
    assert len(side.told) == 1
    assert None not in side.told[0]["late"]


def test_plain_calls_behind_a_gate_that_are_wrong_are_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong, side = checks((1, 3)), Side([checks()])
    monkeypatch.setattr(race_screen, "time_series", lambda *given: (12.5, wrong))
    context = side.context()
    context.job = replace(context.job, placement=Placement.FULL, device=Device.CUDA)
    with pytest.raises(Fault) as caught:
        race_screen.screen_races(context)
    assert (caught.value.cause, caught.value.ranks) == ("race_between_calls", (1,))
    assert [series["spaced"] for series in side.told] == [True]


@pytest.mark.similar  # that it is caught with them is tried among misbehaving kernels
def test_without_new_inputs_what_a_kernel_keeps_by_a_tensor_is_right() -> None:
    report = judged_by("no_fresh_inputs", named("misbehaving", "keeps_what_a_tensor_held").job)
    assert report.verdict is Verdict.OK, report.message


def test_new_inputs_of_other_lengths_are_laid_out_anew() -> None:
    name = problems.find("gnn_sparse_embedding_all2all")
    job = Job(problem=name, source=reference_source(name), placement=Placement.SHARED)
    report = judged(job)
    assert report.verdict is Verdict.OK, report.message


def test_a_kernel_that_is_wrong_call_by_call_is_no_race() -> None:
    job = replace(named("misbehaving", "one_percent_wrong").job, placement=Placement.SHARED)
    report = judged(job)
    assert (report.verdict, report.cause) == (Verdict.OUTPUT_MISMATCH, "values")
