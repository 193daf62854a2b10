"""What tests of running evaluations share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from evaluator.messages.codec import encode
from evaluator.messages.report import Phase, Progress, Verdict
from leaderboard.models import Run
from leaderboard.runs import evaluation
from leaderboard.runs.hosts import Hello
from tests.leaderboard import factory

NO_TRITON = "the kernel needs Triton, which is not installed"
PROGRESS = encode(Progress(phase=Phase.VERIFY, done=2, total=6))
HELLO = Hello(
    host="h", queue="cpu", hardware="CPU", isolation="bwrap", judge_version="1", versions={}
)


def report_of(run: Run, verdict: Verdict = Verdict.OK, **changes: Any) -> dict[str, Any]:
    """As a worker sends it."""
    return dict(encode(factory.make_report(run, verdict, **changes)))


def decline(run: Run, host: str = "host-1", reason: str = NO_TRITON) -> None:
    """A host claims the run, gets somewhere, and finds that it cannot judge it."""
    lease = evaluation.lease(run.id, host)
    evaluation.heartbeat(run.id, lease.token, PROGRESS)
    report = report_of(run, Verdict.HOST_UNSUPPORTED, trials=(), message=reason)
    evaluation.finish(run.id, lease.token, report)


def lapse(run: Run) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_until=past)


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)
