"""Rows that make no sense cannot be stored, and what is stored cannot be changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState
from django.utils import timezone

from evaluator.messages.report import Verdict
from leaderboard.models import (
    ApiToken,
    AuditEntry,
    Decline,
    Kernel,
    Problem,
    PublishedResult,
    Run,
    Source,
    Submission,
    Summary,
)
from leaderboard.models.submissions import AppendOnlyError
from tests.leaderboard import factory
from tests.leaderboard.timings import make_timing

pytestmark = pytest.mark.server

NOW = timezone.now()
LEASE = {"lease_token": "t", "lease_until": NOW + timedelta(seconds=60)}
RUNNING = {"status": "running", "host": "h", "tries": 1, "started_at": NOW, **LEASE}
ENDED = {"finished_at": NOW, "message": "why"}
TIMES = {
    **{"kernel_us": 1.0, "baseline_us": 2.0},
    **{"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1},
}
DONE = {
    **ENDED,
    **{"status": "done", "verdict": "output_mismatch", "isolation": "bwrap"},
    **{"judge_version": "1", "environment": {}, "report_packed": b"x"},
}
OK = {**DONE, **TIMES, "verdict": "ok"}


def _update(rows: Any, values: dict[str, Any]) -> None:
    with transaction.atomic():
        rows.update(**values)


@pytest.mark.parametrize(
    "values",
    [
        RUNNING,
        DONE,
        OK,
        {**OK, "verdict": "faster_than_light"},
        {**ENDED, "status": "failed", "verdict": "infra_error"},
        {**ENDED, "status": "cancelled", "verdict": "cancelled"},
        {**DONE, "verdict": "host_unsupported"},
        {"tries": 3},
        {**OK, "bound_us": 0.0, "limiter": "latency", "utilisation": 0.0},
        {**DONE, "bound_us": 1.0, "limiter": "flops"},
    ],
)
def test_a_run_that_makes_sense_is_stored(run: Run, values: dict[str, Any]) -> None:
    _update(Run.objects.filter(pk=run.pk), values)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"status": "asleep"}, id="unknown status"),
        pytest.param({**DONE, "verdict": "fine"}, id="unknown verdict"),
        pytest.param({"profile": "soft"}, id="unknown profile"),
        pytest.param({"dtype": "int3"}, id="unknown dtype"),
        pytest.param({"device": "tpu"}, id="unknown device"),
        pytest.param({"phase": "lunch"}, id="unknown phase"),
        pytest.param({**DONE, "isolation": "trust"}, id="unknown isolation"),
        pytest.param({"world_size": 1}, id="one rank"),
        pytest.param({"world_size": 65}, id="too many ranks"),
        pytest.param({"tries": 4}, id="a fourth try"),
        pytest.param({"progress_done": 2, "progress_total": 1}, id="more done than there is"),
        pytest.param(LEASE, id="queued with a lease"),
        pytest.param({**RUNNING, "lease_token": None}, id="running without a token"),
        pytest.param({**RUNNING, "lease_until": None}, id="running without an end of lease"),
        pytest.param({**RUNNING, "host": ""}, id="running nowhere"),
        pytest.param({**RUNNING, "tries": 0}, id="running untried"),
        pytest.param({**RUNNING, "verdict": "ok", "message": "x"}, id="verdict while running"),
        pytest.param({"finished_at": NOW}, id="queued but finished"),
        pytest.param({"report_packed": b"x"}, id="queued with a report"),
        pytest.param({**DONE, **LEASE}, id="done with a lease"),
        pytest.param({**DONE, "verdict": None, "message": ""}, id="done without a verdict"),
        pytest.param({**DONE, "finished_at": None}, id="done without an end"),
        pytest.param({**DONE, "report_packed": None}, id="done without a report"),
        pytest.param({**DONE, "isolation": None}, id="done without isolation"),
        pytest.param({**DONE, "judge_version": None}, id="done without judge version"),
        pytest.param({**DONE, "environment": None}, id="done without environment"),
        pytest.param({**DONE, "message": ""}, id="verdict without a message"),
        pytest.param({"message": "x"}, id="message without a verdict"),
        pytest.param({**DONE, "verdict": "infra_error"}, id="our fault as a result"),
        pytest.param({**DONE, "verdict": "cancelled"}, id="cancelled as a result"),
        pytest.param({**ENDED, "status": "failed", "verdict": "ok"}, id="failed but ok"),
        pytest.param({"status": "cancelled", "finished_at": NOW}, id="cancelled unsaid"),
        pytest.param({**OK, "verdict": None, "message": ""}, id="timed without a verdict"),
        pytest.param({"status": "failed", "finished_at": NOW}, id="failed unsaid"),
        pytest.param({**DONE, "verdict": "ok"}, id="ok without times"),
        pytest.param({**DONE, **TIMES}, id="wrong but timed"),
        pytest.param({**OK, "speedup": None}, id="half a timing"),
        pytest.param({**OK, "kernel_us": 0.0}, id="no time at all"),
        pytest.param({**OK, "baseline_us": -1.0}, id="negative time"),
        pytest.param({**OK, "speedup_low": 2.05}, id="interval above"),
        pytest.param({**OK, "speedup_high": 1.95}, id="interval below"),
        {**OK, "bound_us": 1.0},
        {**OK, "bound_us": -1.0, "limiter": "wire"},
        {**OK, "bound_us": 1.0, "limiter": "luck"},
        {**OK, "utilisation": 0.5},
        {**DONE, "bound_us": 1.0, "limiter": "hbm", "utilisation": 0.5},
    ],
)
def test_a_run_that_makes_no_sense_is_refused(run: Run, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        _update(Run.objects.filter(pk=run.pk), values)


def test_a_finished_run_is_never_changed(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    for values in ({"speedup": 1.31}, {"status": "queued"}, {"message": "better"}):
        with pytest.raises(IntegrityError, match="append-only"):
            _update(Run.objects.filter(pk=run.pk), values)


@pytest.mark.parametrize(
    ("model", "values"),
    [(Kernel, {"attempt": 2}), (Source, {"size_bytes": 1}), (AuditEntry, {"action": "other"})],
)
def test_what_was_handed_in_is_never_changed(run: Run, model: Any, values: Any) -> None:
    AuditEntry.objects.create(action="moderate", subject="submission 1")
    with pytest.raises(IntegrityError, match="append-only"):
        _update(model.objects.all(), values)


def test_runs_and_kernels_cannot_be_deleted(run: Run) -> None:
    for rows in (Run.objects.all(), Kernel.objects.all()):
        with pytest.raises(AppendOnlyError):
            rows.delete()
    with pytest.raises(Exception, match="protected"):
        Submission.objects.all().delete()


@pytest.mark.parametrize(
    "values",
    [
        {"harness": "guessing"},
        {"k": 0},
        {"step_budget": 20},
        {"visibility": "secret"},
        {"trust": "gut feeling"},
        {"moderation": "disputed"},
        {"moderation_reason": "for no reason"},
        {"cost_usd": -0.01},
        {"cost_usd": float("inf")},
        {"link": "javascript:alert(1)"},
    ],
)
def test_a_submission_that_makes_no_sense_is_refused(run: Run, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        _update(Submission.objects.all(), values)


@pytest.mark.parametrize("values", [{"scored": False}, {"unscored_reason": "why"}])
def test_an_unscored_problem_says_why(problem: Problem, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        _update(Problem.objects.all(), values)


@pytest.mark.parametrize(
    "values",
    [{"correct": 3}, {"best_speedup": None}, {"correct": 0}, {"made": 0}],
)
def test_a_summary_that_makes_no_sense_is_refused(run: Run, values: dict[str, Any]) -> None:
    factory.finish(run, factory.make_report(run))
    with pytest.raises(IntegrityError):
        _update(Summary.objects.all(), values)


def test_a_kernel_stands_once_in_a_submission(run: Run) -> None:
    with pytest.raises(IntegrityError):
        factory.make_kernel(run.kernel.submission, run.kernel.problem)


@pytest.mark.parametrize("values", [{"host": ""}, {"reason": ""}, {"host": "other"}])
def test_a_decline_that_makes_no_sense_is_refused(run: Run, values: dict[str, Any]) -> None:
    for host in ("host", "other"):
        Decline.objects.create(run=run, host=host, reason="why", declined_at=NOW)
    with pytest.raises(IntegrityError):
        _update(Decline.objects.filter(host="host"), values)


@pytest.mark.parametrize("values", [{"fast_at_1": 40}, {"correct_at_1": 99}])
def test_a_claim_that_makes_no_sense_is_refused(db: None, values: dict[str, Any]) -> None:
    factory.make_publication()
    with pytest.raises(IntegrityError):
        _update(PublishedResult.objects.filter(category=None), values)


def test_a_worker_token_has_no_owner_and_others_have(owner: Any) -> None:
    for scope, user in (("worker", owner), ("submit", None)):
        with pytest.raises(IntegrityError), transaction.atomic():
            ApiToken.objects.create(scope=scope, owner=user, prefix="p", digest=scope, name="n")


def test_the_migrations_say_what_the_models_say(db: None) -> None:
    loader = MigrationExecutor(connection).loader
    detector = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
    assert detector.changes(graph=loader.graph).get("leaderboard") is None


def test_faster_than_light_does_not_count_as_correct(run: Run) -> None:
    timing = make_timing(90.0)
    report = factory.make_report(run, Verdict.FASTER_THAN_LIGHT, timing=timing)
    factory.finish(run, report)
    row = Summary.objects.get()
    assert (row.made, row.correct, row.speedups) == (1, 0, [])
