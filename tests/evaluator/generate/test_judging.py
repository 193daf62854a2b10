"""Who judges while a model waits: what is tried again, what is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from evaluator.evaluate import Cancelled
from evaluator.generate import judging
from evaluator.generate.judging import HostJudge, Practice, Revision
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement
from evaluator.messages.report import Report, Trial, Verdict
from tests.evaluator.test_feedback import FAILED

PRACTICE = Practice(
    problem="allreduce",
    backend=Backend.PYTORCH,
    world_size=2,
    size="tiny",
    dtype=Dtype.FLOAT32,
    device=Device.CPU,
)

KERNEL = Revision(source="a kernel")


@contextmanager
def _judge(*, is_over: bool = False) -> Iterator[HostJudge]:
    judge = HostJudge(lambda: is_over)
    try:
        yield judge
    finally:
        judge.close()


def _failing(monkeypatch: pytest.MonkeyPatch, *faults: Exception) -> list[Job]:
    """Have the judge fail so often before it reports; the jobs that it got."""
    jobs: list[Job] = []
    left = iter(faults)

    def evaluate(job: Job, *_: object) -> Report:
        jobs.append(job)
        for fault in left:
            raise fault
        return FAILED

    monkeypatch.setattr(judging, "evaluate", evaluate)
    return jobs


def test_our_own_faults_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = _failing(monkeypatch, EvaluatorError("noise"), EvaluatorError("noise"))
    with _judge() as judge:
        found, _ = judge.judge(PRACTICE, KERNEL)
    assert found.verdict == "runtime_error"
    assert [job.source for job in jobs] == [KERNEL.source] * 3


def test_ranks_are_placed_as_the_run_says(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = _failing(monkeypatch)
    with _judge() as judge:
        for placement in Placement:
            judge.judge(replace(PRACTICE, placement=placement), KERNEL)
    assert [job.placement for job in jobs] == list(Placement)


def test_they_are_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = _failing(monkeypatch, *[EvaluatorError("noise")] * 9)
    with _judge() as judge, pytest.raises(EvaluatorError):
        judge.judge(replace(PRACTICE, device=Device.CUDA), KERNEL)
    assert len(jobs) == 3
    with _judge() as judge, pytest.raises(EvaluatorError):
        judge.judge(PRACTICE, KERNEL)
    assert len(jobs) == 7


def test_a_host_that_cannot_time_says_whether_a_kernel_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def evaluate(job: Job, *_: object) -> Report:
        if job.placement is Placement.FULL:
            raise EvaluatorError("the judge was away for 9 s while it took times")
        trial = Trial(trial=1, m=4, n=4, note="", checks=())
        return replace(FAILED, verdict=Verdict.OK, setting=job.setting, trials=(trial,))

    monkeypatch.setattr(judging, "evaluate", evaluate)
    with _judge() as judge:
        found, _ = judge.judge(PRACTICE, KERNEL)
    assert (found.verdict, found.is_right, found.is_fast) == ("ok", True, False)
    assert found.text.startswith("verdict: ok, not timed\ntiming: none, because this host is busy")


def test_a_host_that_is_not_clean_judges_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = _failing(monkeypatch, DirtyHost("strangers"))
    with _judge() as judge, pytest.raises(DirtyHost):
        judge.judge(PRACTICE, KERNEL)
    assert len(jobs) == 1


def test_nothing_is_judged_once_the_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = _failing(monkeypatch)
    with _judge(is_over=True) as judge, pytest.raises(Cancelled):
        judge.judge(PRACTICE, KERNEL)
    assert not jobs
