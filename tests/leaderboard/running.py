"""What tests of running evaluations share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from evaluator.messages.codec import encode
from evaluator.messages.job import source_digest
from evaluator.messages.report import JUDGE_VERSION, Phase, Progress, Verdict
from leaderboard.models import ApiToken, Kernel, Problem, Run, Scope, WorkerHost
from leaderboard.runs import claims, evaluation
from leaderboard.runs.claims import Claimant, Lease
from leaderboard.runs.hosts import Hello, record_hello
from tests.leaderboard import factory

NO_TRITON = "the kernel needs Triton, which is not installed"
PROGRESS = encode(Progress(phase=Phase.VERIFY, done=2, total=6))
HELLO = Hello(
    host="h",
    queue="cpu",
    hardware="2 x CPU",
    isolation="bwrap",
    judge_version=JUDGE_VERSION,
    versions={},
)


def worker_token(name: str = "worker") -> ApiToken:
    """The token of that name, good for everything; made if it is new."""
    found = ApiToken.objects.filter(name=name, scope=Scope.WORKER).first()
    return (
        found or ApiToken.objects.issue(scope=Scope.WORKER, name=name, good_for={"groups": 99})[0]
    )


def say_hello(hello: Hello = HELLO, token: str = "worker") -> None:
    record_hello(hello, worker_token(token))


def introduced(run: Run, host: str, token: ApiToken) -> WorkerHost:
    """A host of the run's class of which the site has heard once, long ago."""
    facts = {"hardware": "2 x CPU", "isolation": "bwrap", "judge_version": JUDGE_VERSION}
    long_ago = timezone.now() - timedelta(days=1)
    known, _ = WorkerHost.objects.get_or_create(
        host=host,
        queue=run.hardware_id,
        defaults={**facts, "token": token, "last_seen_at": long_ago},
    )
    return known


def claimant(run: Run, host: str = "host-1", token: str = "worker") -> Claimant:
    """As its host told the site at hello."""
    known = introduced(run, host, worker_token(token))
    return Claimant(
        token=worker_token(token),
        host=host,
        isolation=known.isolation,
        judge_version=known.judge_version,
    )


def claim(run: Run, host: str = "host-1", token: str = "worker") -> Lease:
    return claims.lease(run.pk, claimant(run, host, token))


def lose(run: Run) -> None:
    """Let its hosts be gone until the site gives it up."""
    factory.start(run)
    Run.objects.filter(pk=run.pk).update(tries=3, lease_until=timezone.now() - timedelta(seconds=9))
    evaluation.give_up_lost()


def report_of(run: Run, verdict: Verdict = Verdict.OK, **changes: Any) -> dict[str, Any]:
    """As the worker that has the run sends it."""
    report = dict(encode(factory.make_report(run, verdict, **changes)))
    report["environment"]["host"] = fresh(run).host or "host-1"
    return report


def decline(run: Run, host: str = "host-1", reason: str = NO_TRITON) -> None:
    """A host claims the run, gets somewhere, and finds that it cannot judge it."""
    holding = claim(run, host).holding
    evaluation.heartbeat(run.id, holding, PROGRESS)
    report = report_of(run, Verdict.HOST_UNSUPPORTED, trials=(), message=reason)
    evaluation.finish(run.id, holding, report)


def lapse(run: Run) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_until=past)


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def unsaved(problem: Problem, source: str) -> Run:
    """A run in no database, for a report that was made elsewhere."""
    kernel = Kernel(problem=problem, source_id=source_digest(source))
    return Run(kernel=kernel, problem_digest=problem.digest, **factory.SETTING)
