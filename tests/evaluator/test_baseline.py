"""The reference is timed alone, before the submission and after it, and its times serve others."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.judge import baseline, phases
from evaluator.judge.baseline import Baselines, KeptBaseline, measure_after
from evaluator.judge.findings import Findings
from evaluator.messages.faults import Fault
from evaluator.messages.job import Device, Job
from evaluator.messages.report import UNCLEAN_HOST, Report, Verdict
from evaluator.timing.pace import CHECK_AFTER_S, SERVES_S
from evaluator.timing.timing import Baseline, Times
from tests.evaluator.judging import judged_by
from tests.evaluator.kernel_files import named


def times(us: float) -> Times:
    return Times(calls=[us] * 8, empty=[1.0] * 8)


def context_of(digest: str = "p", **setting: Any) -> Any:
    """Return as much of a run as a baseline needs; `done` is what has happened, in order."""
    done: list[str] = []
    return SimpleNamespace(
        oracle=SimpleNamespace(module=SimpleNamespace(digest=digest)),
        job=Job(problem="allreduce", source="x", **setting),
        findings=Findings(),
        host=SimpleNamespace(alone=contextlib.nullcontext),
        pool=SimpleNamespace(quiet=contextlib.nullcontext),
        phase=lambda phase: contextlib.nullcontext(),
        is_reference_ready=False,
        reference=SimpleNamespace(side="reference", paused=contextlib.nullcontext),
        done=done,
        start=lambda side: done.append("start"),
        prepare=lambda: None,
        wait_ready=lambda side: None,
        give_slabs=lambda side: None,
    )


class Clock:
    """Times the reference: each time it takes the next of these, in microseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *us: float) -> None:
        self.left, self.now_s = list(us), 1000.0
        monkeypatch.setattr(baseline, "time_side", self.time_side)
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        monkeypatch.setattr(baseline, "time", clock)
        monkeypatch.setattr(phases, "_judge", self.judge)

    def time_side(self, context: Any, side: Any) -> Times:
        assert side is context.reference
        context.done.append("reference")
        return times(self.left.pop(0))

    def judge(self, context: Any) -> Times:
        context.done.append("submission")
        return times(50.0)


def test_a_baseline_serves_the_same_problem_and_setting_for_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, kept = Clock(monkeypatch), Baselines()
    assert kept.find(context_of()) is None
    own = Baseline(before=times(100.0), after=times(100.0))
    kept.keep(context_of(), own)
    assert found_in(kept, context_of()).baseline is own
    for other in (context_of("another"), context_of(world_size=4), context_of(device=Device.CUDA)):
        assert kept.find(other) is None
    clock.now_s += SERVES_S - 1
    assert found_in(kept, context_of()).age_s == SERVES_S - 1
    clock.now_s += 2
    assert kept.find(context_of()) is None


def test_a_baseline_that_drifts_serves_nobody_and_ends_the_one_before() -> None:
    kept = Baselines()
    kept.keep(context_of(), Baseline(before=times(100.0), after=times(100.0)))
    kept.keep(context_of(), Baseline(before=times(100.0), after=times(200.0), is_drifted=True))
    assert kept.find(context_of()) is None


def found_in(kept: Baselines, context: Any) -> KeptBaseline:
    found = kept.find(context)
    assert found is not None
    return found


def test_the_reference_is_timed_before_the_submission_and_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Clock(monkeypatch, 100.0, 101.0)
    context, kept = context_of(), Baselines()
    phases._judge_timed(context, kept)
    assert context.done == ["start", "reference", "submission", "reference"]
    assert context.findings.timing.speedup == pytest.approx(2.01)
    assert found_in(kept, context).baseline.after is not None


def test_what_was_measured_is_measured_no_more_for_ten_minutes_and_then_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, kept = Clock(monkeypatch, 100.0, 100.0, 101.0), Baselines()
    phases._judge_timed(context_of(), kept)
    clock.now_s += CHECK_AFTER_S - 1
    second = context_of()
    phases._judge_timed(second, kept)
    assert second.done == ["submission"]
    assert second.findings.timing.speedup == pytest.approx(2.0)
    clock.now_s += 2
    third = context_of()
    phases._judge_timed(third, kept)
    assert third.done == ["submission", "start", "reference"]
    assert found_in(kept, third).age_s == 0


def test_nothing_is_timed_after_a_submission_that_cannot_be_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Clock(monkeypatch, 100.0)
    context, kept = context_of(), Baselines()
    context.findings.flags.append(UNCLEAN_HOST)
    phases._judge_timed(context, kept)
    assert context.done == ["start", "reference", "submission"]
    assert context.findings.timing is None


def test_what_was_measured_before_a_submission_that_fails_serves_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Clock(monkeypatch, 100.0)
    kept = Baselines()

    def fail(context: Any) -> Times:
        raise Fault(Verdict.RUNTIME_ERROR, "raised", "it raised")

    with monkeypatch.context() as failing:
        failing.setattr(phases, "_judge", fail)
        with pytest.raises(Fault):
            phases._judge_timed(context_of(), kept)
    second = context_of()
    phases._judge_timed(second, kept)
    assert second.done == ["submission"]
    assert second.findings.timing.after_us is None


@pytest.mark.parametrize(
    ("after", "before_us", "after_us", "is_drifted"),
    [
        ((102.0,), 100.0, 102.0, False),
        ((150.0, 101.0, 102.0), 100.0, 102.0, False),
        ((150.0, 101.0, 120.0), 100.0, 120.0, True),
        ((150.0, 150.0, 150.0), 100.0, 150.0, True),
        ((60.0, 61.0, 60.0), 61.0, 60.0, False),
    ],
    ids=["agrees", "agrees at last", "drifts", "is slow for good", "was slow before"],
)
def test_a_reference_that_differs_afterwards_is_timed_twice_more(
    after: tuple[float, ...],
    before_us: float,
    after_us: float,
    is_drifted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, *after)
    found = measure_after(context_of(), times(100.0))
    assert clock.left == []
    assert found.after is not None
    assert (found.before.us, found.after.us) == (before_us, after_us)
    assert found.is_drifted is is_drifted


def _speedup(report: Report) -> float:
    assert report.verdict is Verdict.OK, report.message
    assert report.timing is not None
    return report.timing.speedup


@pytest.mark.alone
@pytest.mark.parametrize(
    ("tuning", "mutation"),
    [
        ("slow_once_after", "references_always_agree"),
        pytest.param("slow_ever_after", "slower_reference_counts", marks=pytest.mark.similar),
    ],
)
def test_a_reference_that_is_slow_after_a_submission_is_no_speedup(
    tuning: str, mutation: str
) -> None:
    job = named("honest", "all_reduce").job
    report = judged_by(tuning, job)
    assert _speedup(report) < 5
    if tuning == "slow_ever_after":  # a processor that others use may drift the other way, too
        assert "baseline_drifted" in report.flags
    assert _speedup(judged_by(mutation, job)) > 10
