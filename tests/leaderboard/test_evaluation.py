"""A run's way from queued to finished, and everything that may go wrong on it."""

from __future__ import annotations

import json
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from evaluator.codec import encode
from evaluator.report import Phase, Progress, RankLog, Report, Verdict
from leaderboard import evaluation, frames, hosts, summary
from leaderboard.evaluation import Fenced
from leaderboard.models import (
    DataVersion,
    Problem,
    Run,
    Status,
    Submission,
    Summary,
    Trust,
    WorkerHost,
)
from leaderboard.refusal import Refusal
from tests.leaderboard import factory
from tests.leaderboard.conftest import Bells

PROGRESS = encode(Progress(phase=Phase.VERIFY, done=2, total=6))
HELLO = hosts.Hello(
    host="h", queue="cpu", hardware="CPU", isolation="bwrap", judge_version="1", versions={}
)


def _report(run: Run, verdict: Verdict = Verdict.OK, **changes: Any) -> dict[str, Any]:
    return dict(encode(factory.make_report(run, verdict, **changes)))


def _lapse(run: Run) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_until=past)


def _fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def test_a_claim_hands_out_the_job_and_a_lease(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    assert lease.job.problem == "allreduce"
    assert lease.job.kernel_digest == run.kernel.source_id
    found = _fresh(run)
    assert (found.status, found.tries, found.host) == (Status.RUNNING, 1, "host-1")
    assert found.lease_until is not None
    assert found.lease_until > timezone.now()


def test_a_claimed_run_cannot_be_claimed_again(run: Run) -> None:
    evaluation.claim(run.id, "host-1")
    with pytest.raises(Fenced):
        evaluation.claim(run.id, "host-2")


def test_a_silent_workers_run_can_be_claimed_and_fences_the_zombie(run: Run) -> None:
    first = evaluation.claim(run.id, "host-1")
    _lapse(run)
    second = evaluation.claim(run.id, "host-2")
    with pytest.raises(Fenced):
        evaluation.heartbeat(run.id, first.token, PROGRESS)
    with pytest.raises(Fenced):
        evaluation.finish(run.id, first.token, _report(run, Verdict.OUTPUT_MISMATCH))
    with pytest.raises(Fenced):
        evaluation.fail(run.id, first.token, "late")
    assert not Summary.objects.exists()
    evaluation.finish(run.id, second.token, _report(run))
    assert _fresh(run).verdict == Verdict.OK
    assert second.tries == 2


def test_a_heartbeat_extends_the_lease_and_notes_the_progress(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    _lapse(run)
    assert evaluation.heartbeat(run.id, lease.token, PROGRESS) is False
    found = _fresh(run)
    assert found.lease_until is not None
    assert found.lease_until > timezone.now()
    assert (found.phase, found.progress_done, found.progress_total) == ("verify", 2, 6)


@pytest.mark.parametrize(
    "progress",
    [
        {"phase": "verify", "done": 7, "total": 6},
        {"phase": "verify", "done": -1, "total": 6},
        {"phase": "verify", "done": 1 << 40, "total": 1 << 40},
        {"phase": "lunch"},
        {"phase": "verify", "step": 1},
        [],
    ],
)
def test_progress_that_makes_no_sense_is_refused(run: Run, progress: Any) -> None:
    lease = evaluation.claim(run.id, "host-1")
    with pytest.raises(Refusal) as refused:
        evaluation.heartbeat(run.id, lease.token, progress)
    assert refused.value.code == "bad_progress"


def test_finish_stores_result_summary_trust_and_data_version_together(run: Run) -> None:
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    before = DataVersion.objects.current()
    lease = evaluation.claim(run.id, "host-1")
    evaluation.finish(run.id, lease.token, _report(run, speedup=1.5))
    found = _fresh(run)
    assert (found.status, found.verdict, found.speedup) == (Status.DONE, "ok", 1.5)
    assert found.report is not None
    assert len(found.report["timing"]["kernel_bursts_us"]) == 8
    row = Summary.objects.get()
    assert (row.made, row.correct, row.best_speedup, row.best_run_id) == (1, 1, 1.5, run.id)
    assert Submission.objects.get().trust == Trust.VERIFIED
    assert DataVersion.objects.current() > before
    assert frames.differences() == []


def test_nothing_is_stored_where_the_summary_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = evaluation.claim(run.id, "host-1")

    def broken(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(summary, "rewrite", broken)
    with pytest.raises(RuntimeError):
        evaluation.finish(run.id, lease.token, _report(run))
    assert _fresh(run).status == Status.RUNNING


@pytest.mark.parametrize("part", ["problem", "problem_digest", "kernel_digest"])
def test_a_report_about_something_else_is_refused(run: Run, part: str) -> None:
    lease = evaluation.claim(run.id, "host-1")
    with pytest.raises(Refusal) as refused:
        evaluation.finish(run.id, lease.token, {**_report(run), part: "other"})
    assert refused.value.code == "wrong_subject"
    assert _fresh(run).status == Status.RUNNING


@pytest.mark.parametrize(
    "change",
    [
        {"timing": None},
        {"verdict": "splendid"},
        {"verdict": "output_mismatch"},
        {"surprise": 1},
        {"message": ""},
        {"message": 7},
        {"trials": []},
        {"isolation": "none at all"},
    ],
)
def test_a_report_that_makes_no_sense_is_refused(run: Run, change: dict[str, Any]) -> None:
    lease = evaluation.claim(run.id, "host-1")
    with pytest.raises(Refusal) as refused:
        evaluation.finish(run.id, lease.token, {**_report(run), **change})
    assert refused.value.code == "bad_report"
    assert _fresh(run).status == Status.RUNNING


def test_times_that_are_not_finite_are_refused(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    report = _report(run)
    report["timing"]["kernel_us"] = float("inf")
    with pytest.raises(Refusal, match="finite"):
        evaluation.finish(run.id, lease.token, report)


def test_texts_of_a_submission_are_stored_whatever_they_hold(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    nasty = "a\0b\ud800<script>\u202e"
    log = RankLog(rank=0, text=nasty)
    report = _report(run, Verdict.RUNTIME_ERROR, message=nasty, cause=nasty, logs=(log,))
    evaluation.finish(run.id, lease.token, json.loads(json.dumps({**report, "flags": [nasty]})))
    found = _fresh(run)
    assert found.message == "a\ufffdb?<script>\u202e"
    assert found.report is not None
    assert found.report["logs"][0]["text"] == found.message


def test_our_fault_is_tried_three_times_and_then_counts_against_nobody(run: Run) -> None:
    for tries in (1, 2, 3):
        lease = evaluation.claim(run.id, "host-1")
        assert lease.tries == tries
        evaluation.fail(run.id, lease.token, "driver hung\0")
    found = _fresh(run)
    assert (found.status, found.verdict) == (Status.FAILED, Verdict.INFRA_ERROR)
    assert found.last_error == "driver hung\ufffd"
    assert not Summary.objects.exists()
    with pytest.raises(Fenced):
        evaluation.claim(run.id, "host-1")


def test_an_infra_report_is_a_failure_of_ours(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    evaluation.finish(run.id, lease.token, _report(run, Verdict.INFRA_ERROR, trials=()))
    assert _fresh(run).status == Status.QUEUED


def test_a_host_that_cannot_is_no_result_of_the_kernel(run: Run) -> None:
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    lease = evaluation.claim(run.id, "host-1")
    report = _report(run, Verdict.HOST_UNSUPPORTED, trials=())
    evaluation.finish(run.id, lease.token, report)
    assert _fresh(run).status == Status.DONE
    assert not Summary.objects.exists()
    assert Submission.objects.get().trust == Trust.SELF_REPORTED


def test_a_waiting_run_is_cancelled_at_once(run: Run) -> None:
    evaluation.cancel(run)
    assert _fresh(run).status == Status.CANCELLED
    with pytest.raises(Fenced):
        evaluation.claim(run.id, "host-1")
    with pytest.raises(Refusal, match="finished"):
        evaluation.cancel(run)


@pytest.mark.parametrize("ending", ["fail", "report", "silence"])
def test_a_running_run_is_cancelled_through_its_worker(run: Run, ending: str) -> None:
    lease = evaluation.claim(run.id, "host-1")
    evaluation.cancel(run)
    assert evaluation.heartbeat(run.id, lease.token, PROGRESS) is True
    if ending == "fail":
        evaluation.fail(run.id, lease.token, "cancelled")
    elif ending == "report":
        evaluation.finish(run.id, lease.token, _report(run, Verdict.CANCELLED, trials=()))
    else:
        _lapse(run)
        hosts.sweep()
    assert (_fresh(run).status, _fresh(run).verdict) == (Status.CANCELLED, Verdict.CANCELLED)
    assert not Summary.objects.exists()


def test_the_sweep_takes_up_what_a_silent_worker_left(run: Run, bells: Bells) -> None:
    evaluation.claim(run.id, "host-1")
    hosts.greet(HELLO)
    assert _fresh(run).status == Status.RUNNING
    _lapse(run)
    hosts.greet(HELLO)
    assert _fresh(run).status == Status.QUEUED
    assert bells == [(run.id, "cpu")]
    assert _fresh(run).last_error == "host-1 went silent."


def test_a_run_whose_worker_dies_three_times_fails(run: Run) -> None:
    for _ in range(3):
        evaluation.claim(run.id, "host-1")
        _lapse(run)
        hosts.sweep()
    assert _fresh(run).status == Status.FAILED


def test_a_lost_bell_is_rung_again_after_a_while_and_once(
    run: Run, bells: Bells, settings: LazySettings
) -> None:
    long_ago = timezone.now() - timedelta(seconds=settings.PKB_RERING_S + 1)
    Run.objects.filter(pk=run.pk).update(rung_at=long_ago)
    hosts.greet(HELLO)
    hosts.greet(HELLO)
    assert bells == [(run.id, "cpu")]


def test_no_bell_for_a_queue_without_a_living_host(run: Run, bells: Bells) -> None:
    hosts.greet(HELLO)
    bells.clear()
    Run.objects.filter(pk=run.pk).update(rung_at=None)
    WorkerHost.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    assert hosts.sweep() == 0
    assert bells == []


def test_a_long_queue_is_not_rung_all_at_once(problem: Problem, bells: Bells) -> None:
    submission = factory.make_submission()
    for attempt in range(1, 8):
        factory.make_run(factory.make_kernel(submission, problem, attempt=attempt))
    hosts.greet(HELLO)
    assert len(bells) == hosts.RINGS_PER_HOST


@pytest.mark.parametrize("queue", ["gpu", "h200x1", "h200x65", "H200x4", "cpu_2", "x4 ", "h" * 40])
def test_a_queue_is_named_after_what_it_has(db: None, queue: str) -> None:
    with pytest.raises(Refusal, match="class of hardware"):
        hosts.register(queue, "?")


def test_hardware_follows_from_the_name_of_its_queue(db: None) -> None:
    made = hosts.register("h200x4", "4 x NVIDIA H200")
    assert (made.device, made.max_world_size) == ("cuda", 4)
    assert hosts.register("cpu", "CPU").device == "cpu"


def test_results_of_an_older_version_of_a_problem_do_not_count(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    assert Summary.objects.count() == 1
    Problem.objects.update(digest="0" * 64)
    assert summary.rebuild() == 0


def test_a_result_without_isolation_is_never_ranked(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    evaluation.finish(run.id, lease.token, {**_report(run), "isolation": "none"})
    assert _fresh(run).verdict == Verdict.OK
    assert not Summary.objects.exists()


def test_the_latest_run_of_an_attempt_counts(problem: Problem) -> None:
    submission = factory.make_submission(k=2)
    first = factory.make_judged(submission, problem, speedup=2.0)
    factory.make_judged(submission, problem, Verdict.OUTPUT_MISMATCH)
    again = factory.make_run(first.kernel)
    factory.finish(again, factory.make_report(again, speedup=1.5))
    row = Summary.objects.get()
    assert (row.made, row.correct, row.best_speedup) == (2, 1, 1.5)
    assert row.attempts[0]["run"] == str(again.id)
    assert frames.differences() == []


def test_settings_are_never_mixed(problem: Problem) -> None:
    kernel = factory.make_kernel(factory.make_submission(), problem)
    for change in ({}, {"size": "standard"}, {"world_size": 4}, {"profile": "upstream"}):
        run = factory.make_run(kernel, **change)
        factory.finish(run, factory.make_report(run))
    assert [row.made for row in Summary.objects.all()] == [1, 1, 1, 1]
    assert len(Summary.objects.ranked().settings()) == 4


def test_rebuilding_the_summary_changes_nothing(problem: Problem) -> None:
    for model, verdicts in (("A", "ok build_error"), ("B", "timeout ok")):
        submission = factory.make_submission(model, k=2)
        for verdict in verdicts.split():
            factory.make_judged(submission, problem, Verdict(verdict))
    columns = [f.attname for f in Summary._meta.fields if f.name != "id"]
    before = list(Summary.objects.values_list(*columns))
    assert summary.rebuild() == len(before) == 2
    assert list(Summary.objects.values_list(*columns)) == before


def test_pandas_finds_a_wrong_summary(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    Summary.objects.update(best_speedup=9.0)
    assert len(frames.differences()) == 1
    Summary.objects.all().delete()
    assert len(frames.differences()) == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_gets_the_run(run: Run) -> None:
    got, lost = _race(lambda name: evaluation.claim(run.id, name))
    assert (len(got), len(lost)) == (1, 7)
    found = _fresh(run)
    assert (found.tries, found.lease_token) == (1, got[0].token)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_takes_over_a_lapsed_lease(run: Run) -> None:
    evaluation.claim(run.id, "dead")
    _lapse(run)
    got, _ = _race(lambda name: evaluation.claim(run.id, name))
    assert len(got) == 1
    assert _fresh(run).tries == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_reports_under_one_lease_one_is_stored(run: Run) -> None:
    lease = evaluation.claim(run.id, "host-1")
    report = _report(run)
    got, lost = _race(lambda _: evaluation.finish(run.id, lease.token, report))
    assert (len(got), len(lost)) == (1, 7)
    assert Summary.objects.get().made == 1


@pytest.mark.django_db(transaction=True)
def test_runs_of_one_submission_that_end_together_are_all_summed_up(problem: Problem) -> None:
    submission = factory.make_submission(k=8)
    work: dict[str, tuple[Run, str, dict[str, Any]]] = {}
    for attempt in range(1, 9):
        run = factory.make_run(factory.make_kernel(submission, problem, attempt=attempt))
        lease = evaluation.claim(run.id, "host-1")
        work[f"worker-{attempt - 1}"] = (run, lease.token, _report(run))
    before = DataVersion.objects.current()
    got, _ = _race(lambda name: evaluation.finish(work[name][0].id, *work[name][1:]))
    assert len(got) == 8
    assert Summary.objects.get().made == 8
    assert DataVersion.objects.current() == before + 8


@pytest.mark.django_db(transaction=True)
def test_of_many_sweeps_one_rings(run: Run, bells: Bells) -> None:
    hosts.greet(HELLO)
    bells.clear()
    Run.objects.filter(pk=run.pk).update(rung_at=None)
    _race(lambda _: hosts.sweep())
    assert bells == [(run.id, "cpu")]


def _race(work: Any, threads: int = 8) -> tuple[list[Any], list[Exception]]:
    """Run `work` in threads that start together: what they got, and the refusals of the others."""
    barrier = Barrier(threads)
    got: list[Any] = []
    refused: list[Exception] = []

    def one(name: str) -> None:
        barrier.wait()
        try:
            got.append(work(name))
        except Fenced as fenced:
            refused.append(fenced)
        finally:
            connection.close()

    workers = [Thread(target=one, args=[f"worker-{i}"]) for i in range(threads)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    return got, refused


def test_a_report_round_trips_through_the_seam(run: Run) -> None:
    report = factory.make_report(run)
    assert isinstance(report, Report)
    lease = evaluation.claim(run.id, "host-1")
    evaluation.finish(run.id, lease.token, json.loads(json.dumps(encode(report))))
    assert _fresh(run).report == json.loads(json.dumps(encode(report)))
