"""A run's way from queued to finished, and everything that may go wrong on it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evaluator.messages.codec import encode
from evaluator.messages.report import RankLog, Report, Verdict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    DataVersion,
    Decline,
    Run,
    Status,
    Submission,
    Summary,
    Trust,
)
from leaderboard.read_model import summary, summary_check
from leaderboard.runs import evaluation, hosts
from leaderboard.runs.claims import LeaseLost
from tests.leaderboard import factory
from tests.leaderboard.running import NO_TRITON, PROGRESS, claim, decline, fresh, lapse, report_of

pytestmark = pytest.mark.server


def test_a_claim_hands_out_the_job_and_a_lease(run: Run) -> None:
    lease = claim(run)
    assert lease.job.problem == "allreduce"
    assert lease.job.kernel_digest == run.kernel.source_id
    found = fresh(run)
    assert (found.status, found.tries, found.host) == (Status.RUNNING, 1, "host-1")
    assert found.lease_until is not None
    assert found.lease_until > timezone.now()


def test_a_claimed_run_cannot_be_claimed_again(run: Run) -> None:
    claim(run)
    with pytest.raises(LeaseLost):
        claim(run, "host-2")


def test_a_silent_workers_run_can_be_claimed_and_fences_the_zombie(run: Run) -> None:
    first = claim(run)
    lapse(run)
    second = claim(run, "host-2")
    with pytest.raises(LeaseLost):
        evaluation.heartbeat(run.id, first.holding, PROGRESS)
    with pytest.raises(LeaseLost):
        evaluation.finish(run.id, first.holding, report_of(run, Verdict.OUTPUT_MISMATCH))
    with pytest.raises(LeaseLost):
        evaluation.fail(run.id, first.holding, "late")
    assert not Summary.objects.exists()
    evaluation.finish(run.id, second.holding, report_of(run))
    assert fresh(run).verdict == Verdict.OK
    assert second.tries == 2


def test_a_heartbeat_extends_the_lease_and_notes_the_progress(run: Run) -> None:
    lease = claim(run)
    lapse(run)
    assert evaluation.heartbeat(run.id, lease.holding, PROGRESS) is False
    found = fresh(run)
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
    lease = claim(run)
    with pytest.raises(RequestError) as refused:
        evaluation.heartbeat(run.id, lease.holding, progress)
    assert refused.value.code == "bad_progress"


def test_what_ranks_print_is_not_told_before_the_end(client: Client, run: Run) -> None:
    """Who reads "slow today" in time can cancel, and a cancelled run counts for nothing."""
    lease = claim(run)
    with pytest.raises(RequestError, match="unknown fields: log"):
        evaluation.heartbeat(run.id, lease.holding, {**PROGRESS, "log": "slow today"})
    evaluation.heartbeat(run.id, lease.holding, PROGRESS)
    told = client.get(f"{run.get_absolute_url()}.json").json()
    assert told["status"] == "running"
    assert told["report"] is None


def test_finish_stores_result_summary_trust_and_data_version_together(run: Run) -> None:
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    before = DataVersion.objects.current()
    lease = claim(run)
    evaluation.finish(run.id, lease.holding, report_of(run, speedup=1.5))
    found = fresh(run)
    assert (found.status, found.verdict, found.speedup) == (Status.DONE, "ok", 1.5)
    assert found.report is not None
    assert len(found.report["timing"]["kernel_bursts_us"]) == 8
    row = Summary.objects.get()
    assert (row.made, row.correct, row.best_speedup, row.best_run_id) == (1, 1, 1.5, run.id)
    assert Submission.objects.get().trust == Trust.VERIFIED
    assert DataVersion.objects.current() > before
    assert summary_check.differences() == []


def test_nothing_is_stored_where_the_summary_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claim(run)

    def broken(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(summary, "update", broken)
    with pytest.raises(RuntimeError):
        evaluation.finish(run.id, lease.holding, report_of(run))
    assert fresh(run).status == Status.RUNNING


@pytest.mark.parametrize("part", ["problem", "problem_digest", "kernel_digest"])
def test_a_report_about_something_else_is_refused(run: Run, part: str) -> None:
    lease = claim(run)
    with pytest.raises(RequestError) as refused:
        evaluation.finish(run.id, lease.holding, {**report_of(run), part: "other"})
    assert refused.value.code == "wrong_subject"
    assert fresh(run).status == Status.QUEUED


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
    lease = claim(run)
    with pytest.raises(RequestError) as refused:
        evaluation.finish(run.id, lease.holding, {**report_of(run), **change})
    assert refused.value.code == "bad_report"
    assert fresh(run).status == Status.QUEUED


def test_times_that_are_not_finite_are_refused(run: Run) -> None:
    lease = claim(run)
    report = report_of(run)
    report["timing"]["kernel_us"] = float("inf")
    with pytest.raises(RequestError, match="finite"):
        evaluation.finish(run.id, lease.holding, report)


def test_texts_of_a_submission_are_stored_whatever_they_hold(run: Run) -> None:
    lease = claim(run)
    nasty = "a\0b\ud800<script>\u202e"
    log = RankLog(rank=0, text=nasty)
    report = report_of(run, Verdict.RUNTIME_ERROR, message=nasty, cause=nasty, logs=(log,))
    evaluation.finish(run.id, lease.holding, json.loads(json.dumps({**report, "flags": [nasty]})))
    found = fresh(run)
    assert found.message == "a\ufffdb?<script>\u202e"
    assert found.report is not None
    assert found.report["logs"][0]["text"] == found.message


def test_our_fault_is_tried_three_times_and_then_counts_against_nobody(run: Run) -> None:
    for tries in (1, 2, 3):
        lease = claim(run)
        assert lease.tries == tries
        evaluation.fail(run.id, lease.holding, "driver hung\0")
    found = fresh(run)
    assert (found.status, found.verdict) == (Status.FAILED, Verdict.INFRA_ERROR)
    assert found.last_error == "driver hung\ufffd"
    assert not Summary.objects.exists()
    with pytest.raises(LeaseLost):
        claim(run)


def test_an_infra_report_is_a_failure_of_ours(run: Run) -> None:
    lease = claim(run)
    evaluation.finish(run.id, lease.holding, report_of(run, Verdict.INFRA_ERROR, trials=()))
    assert fresh(run).status == Status.QUEUED


def test_a_run_that_a_host_cannot_judge_waits_for_another(run: Run) -> None:
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    evaluation.fail(run.id, claim(run).holding, "driver hung")
    decline(run)
    found = fresh(run)
    assert (found.status, found.tries, found.verdict) == (Status.QUEUED, 1, None)
    assert (found.host, found.started_at, found.rung_at, found.phase) == ("", None, None, None)
    assert (found.progress_done, found.progress_total) == (0, 0)
    assert [str(told) for told in Decline.objects.all()] == [f"host-1 declined: {NO_TRITON}"]
    assert not Summary.objects.exists()
    assert Submission.objects.get().trust == Trust.SELF_REPORTED
    with pytest.raises(LeaseLost):
        claim(run)
    lease = claim(run, "host-2")
    assert lease.tries == 2
    evaluation.finish(run.id, lease.holding, report_of(run))
    assert fresh(run).verdict == Verdict.OK


def test_any_number_of_hosts_may_decline(run: Run) -> None:
    for number in range(5):
        decline(run, f"host-{number}")
    assert (fresh(run).status, fresh(run).tries) == (Status.QUEUED, 0)
    assert Decline.objects.count() == 5
    evaluation.cancel(run)
    assert fresh(run).status == Status.CANCELLED


def test_a_silent_workers_run_is_not_taken_over_by_a_host_that_declined_it(run: Run) -> None:
    decline(run)
    claim(run, "host-2")
    lapse(run)
    with pytest.raises(LeaseLost):
        claim(run)
    assert claim(run, "host-3").tries == 2


def test_only_the_holder_of_the_lease_may_decline(run: Run) -> None:
    late = claim(run)
    lapse(run)
    claim(run, "host-2")
    with pytest.raises(LeaseLost):
        evaluation.finish(run.id, late.holding, report_of(run, Verdict.HOST_UNSUPPORTED, trials=()))
    assert (fresh(run).status, fresh(run).host) == (Status.RUNNING, "host-2")
    assert not Decline.objects.exists()


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("two\nlines\t of it", "two lines of it"),
        ("a\0b\ud800\u202e", "a\ufffdb?[U+202E]"),
        (" \n", "it gave no reason"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_the_reason_of_a_decline_is_one_line_that_can_be_shown(
    run: Run, told: str, kept: str
) -> None:
    decline(run, reason=told)
    assert Decline.objects.get().reason == kept


def test_a_waiting_run_is_cancelled_at_once(run: Run) -> None:
    evaluation.cancel(run)
    assert fresh(run).status == Status.CANCELLED
    with pytest.raises(LeaseLost):
        claim(run)
    with pytest.raises(RequestError, match="finished"):
        evaluation.cancel(run)


@pytest.mark.parametrize("ending", ["fail", "report", "decline", "silence"])
def test_a_running_run_is_cancelled_through_its_worker(run: Run, ending: str) -> None:
    lease = claim(run)
    evaluation.cancel(run)
    assert evaluation.heartbeat(run.id, lease.holding, PROGRESS) is True
    if ending == "fail":
        evaluation.fail(run.id, lease.holding, "cancelled")
    elif ending == "report":
        evaluation.finish(run.id, lease.holding, report_of(run, Verdict.CANCELLED, trials=()))
    elif ending == "decline":
        report = report_of(run, Verdict.HOST_UNSUPPORTED, trials=())
        evaluation.finish(run.id, lease.holding, report)
    else:
        lapse(run)
        hosts.sweep()
    assert (fresh(run).status, fresh(run).verdict) == (Status.CANCELLED, Verdict.CANCELLED)
    assert not Decline.objects.exists()
    assert not Summary.objects.exists()


def test_a_report_round_trips_through_the_seam(run: Run) -> None:
    report = factory.make_report(run)
    assert isinstance(report, Report)
    lease = claim(run)
    evaluation.finish(run.id, lease.holding, json.loads(json.dumps(encode(report))))
    assert fresh(run).report == json.loads(json.dumps(encode(report)))
