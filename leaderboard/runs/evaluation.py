"""Exchanges jobs and reports with workers: runs go out under a lease, reports come back as results.

Every change of a run's state is one conditional UPDATE, so that of two workers, sweeps or cancels
at the same moment one wins and the others learn of it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from evaluator import Backend, Device, Dtype, Job, Profile, Progress, Report, Verdict, limits_of
from evaluator.messages.codec import encode
from leaderboard.kit.request_error import RequestError
from leaderboard.models import DataVersion, Decline, Run, Status, Submission, Trust
from leaderboard.models.runs import MAX_TRIES, RunQuerySet
from leaderboard.read_model import summary
from leaderboard.runs.reports import check_subject, clean, columns_of, decoded

NO_LEASE: dict[str, object] = {"lease_token": None, "lease_until": None}
NO_PROGRESS: dict[str, object] = {"phase": None, "progress_done": 0, "progress_total": 0}
ERROR_LIMIT = 10_000


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Holds a leased run: the job, and the token that every later call about it must carry."""

    job: Job
    token: str
    tries: int

    @property
    def encoded_job(self) -> dict[str, object]:
        return dict(encode(self.job))


class Fenced(RequestError):
    """Reports that the run is not this worker's, or no longer."""

    def __init__(self) -> None:
        message = "The run is finished or belongs to another worker."
        super().__init__("fenced", message, "Stop the evaluation and drop it.", status=409)


def lease(run_id: UUID, host: str) -> Lease:
    """Lease a run that waits, or whose worker went silent, and that this host has not declined;
    raise Fenced where there is none."""
    now, token = timezone.now(), secrets.token_urlsafe(32)
    free = Q(status=Status.QUEUED) | Q(status=Status.RUNNING, lease_until__lt=now)
    wanted = Run.objects.not_declined_by(host).filter(tries__lt=MAX_TRIES, cancel_requested=False)
    leased = wanted.filter(free, pk=run_id).update(
        status=Status.RUNNING,
        host=host,
        tries=F("tries") + 1,
        lease_token=token,
        lease_until=_lease_end(now),
        started_at=now,
        **NO_PROGRESS,
    )
    if not leased:
        raise Fenced
    run = Run.objects.with_names().select_related("kernel__source").get(pk=run_id)
    return Lease(job=_job(run), token=token, tries=run.tries)


def heartbeat(run_id: UUID, token: str, progress: object) -> bool:
    """Extend the lease and store the progress; return True if the run shall be cancelled. Raises
    Fenced, and RequestError for a progress that is none."""
    step = decoded(Progress, progress, "progress")
    if not 0 <= step.done <= step.total < 1 << 31:
        raise RequestError("bad_progress", "done must lie between 0 and total.", "Mend the worker.")
    changed = _leased(run_id, token).update(
        lease_until=_lease_end(timezone.now()),
        phase=step.phase,
        progress_done=step.done,
        progress_total=step.total,
    )
    if not changed:
        raise Fenced
    return Run.objects.values_list("cancel_requested", flat=True).get(pk=run_id)


def finish(run_id: UUID, token: str, report: object) -> None:
    """Store a report, its summary and the new data version together, or nothing of them.

    Raises Fenced for a worker that lost its lease, RequestError for a report about something else.
    """
    found = decoded(Report, report, "report")
    run = Run.objects.with_names().filter(pk=run_id).first()
    if run is None:
        raise Fenced
    check_subject(run, found)
    if found.verdict is Verdict.INFRA_ERROR:
        return fail(run_id, token, found.message)
    if found.verdict is Verdict.HOST_UNSUPPORTED:
        return _decline(run, token, found.message)
    cancelled = found.verdict is Verdict.CANCELLED
    status = Status.CANCELLED if cancelled else Status.DONE
    columns = {**columns_of(found), **NO_LEASE, "status": status}
    with transaction.atomic():
        # Two runs of one submission that end together must see each other in the summary.
        own = Submission.objects.filter(pk=run.kernel.submission_id)
        trust = own.select_for_update().values_list("trust", flat=True).get()
        columns["finished_at"] = timezone.now()
        for name, value in columns.items():
            setattr(run, name, value)
        if not _leased(run_id, token).update(**columns):
            raise Fenced
        summary.update(run)
        if run.has_counted_verdict and trust != Trust.VERIFIED:
            own.update(trust=Trust.VERIFIED)
        DataVersion.objects.bump()
    return None


def fail(run_id: UUID, token: str, error: str) -> None:
    """Let a run wait for another try after a fault of ours, MAX_TRIES in all. Raises Fenced.

    Workers are not told at once: a host that just failed would take the run again.
    """
    now = timezone.now()
    with transaction.atomic():
        if not _give_up(_leased(run_id, token), error, now, rung_at=now):
            raise Fenced


def _decline(run: Run, token: str, reason: str) -> None:
    """Let a run wait for another host, as if this one had never leased it. Raises Fenced."""
    leased = _leased(run.pk, token)
    unclaimed = {"status": Status.QUEUED, "host": "", "started_at": None, "rung_at": None}
    with transaction.atomic():
        going_on = leased.filter(cancel_requested=False)
        if going_on.update(tries=F("tries") - 1, **unclaimed, **NO_PROGRESS, **NO_LEASE):
            Decline.objects.keep(run, clean(reason))
        elif leased.update(**_cancelled("Cancelled while it ran.", timezone.now())):
            DataVersion.objects.bump()
        else:
            raise Fenced


def cancel(run: Run, *, even_running: bool = True) -> None:
    """End a waiting run at once; ask the worker of a running one to, if those may be ended too.

    Raises RequestError for a run that is finished, or runs and may not be ended.
    """
    message = "Cancelled before it ran."
    with transaction.atomic():
        # Its worker may hand it back meanwhile: then it is neither of both when looked at twice.
        list(Run.objects.select_for_update().filter(pk=run.pk).values_list("pk"))
        waiting = Run.objects.filter(pk=run.pk, status=Status.QUEUED)
        if waiting.update(**_cancelled(message, timezone.now())):
            DataVersion.objects.bump()
            return
        running = Run.objects.filter(pk=run.pk, status=Status.RUNNING)
        if not even_running and running.exists():
            raise RequestError(
                "already_running",
                "The run is being judged, and what comes of it counts.",
                "It ends by itself within its limits of time.",
                status=409,
            )
        if not running.update(cancel_requested=True):
            raise RequestError(
                "already_finished",
                "The run is finished.",
                "Results are kept; ask for the submission to be withdrawn instead.",
                status=409,
            )


def give_up_lost(now: datetime) -> int:
    """Queue again every run whose lease ended without a word; return how many."""
    lost = Run.objects.running().filter(lease_until__lt=now)
    given_up = 0
    for run_id, token, host in lost.values_list("id", "lease_token", "host"):
        with transaction.atomic():
            still = _leased(run_id, token).filter(lease_until__lt=now)
            given_up += _give_up(still, f"{host} went silent.", now, rung_at=None)
    return given_up


def _give_up(leased: RunQuerySet, error: str, now: datetime, rung_at: datetime | None) -> int:
    """Take a run out of its worker's hands: cancelled, queued again, or failed for good."""
    error = clean(error)[:ERROR_LIMIT]
    queued = {"status": Status.QUEUED, "phase": None, "rung_at": rung_at, "last_error": error}
    going_on = leased.filter(tries__lt=MAX_TRIES, cancel_requested=False)
    if going_on.update(**queued, **NO_LEASE):
        return 1
    if leased.filter(cancel_requested=True).update(**_cancelled("Cancelled while it ran.", now)):
        DataVersion.objects.bump()
        return 1
    failed = leased.update(
        status=Status.FAILED,
        verdict=Verdict.INFRA_ERROR,
        message=f"The evaluation failed {MAX_TRIES} times for reasons of ours; it does not count.",
        last_error=error,
        finished_at=now,
        **NO_LEASE,
    )
    if failed:
        DataVersion.objects.bump()
    return int(failed)


def _cancelled(message: str, now: datetime) -> dict[str, object]:
    return {
        "status": Status.CANCELLED,
        "verdict": Verdict.CANCELLED,
        "message": message,
        "finished_at": now,
        **NO_LEASE,
    }


def _leased(run_id: UUID, token: str | None) -> RunQuerySet:
    return Run.objects.filter(pk=run_id, status=Status.RUNNING, lease_token=token)


def _lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.PKB_LEASE_S)


def _job(run: Run) -> Job:
    device = Device(run.device)
    return Job(
        problem=run.kernel.problem.slug,
        source=run.kernel.source.text,
        backend=Backend(run.kernel.backend),
        world_size=run.world_size,
        size=run.size,
        dtype=Dtype(run.dtype),
        profile=Profile(run.profile),
        device=device,
        limits=limits_of(device),
    )
