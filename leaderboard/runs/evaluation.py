"""Takes what workers send of the runs that they have: progress, reports, failures.

Every change of a run's state is one conditional UPDATE, so that of two workers, sweeps or cancels
at the same moment one wins and the others learn of it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from evaluator import Progress, Report, Verdict
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    DataVersion,
    Decline,
    JudgeUse,
    Notice,
    Problem,
    RefusedReport,
    Run,
    Status,
    Submission,
    Trust,
)
from leaderboard.models.runs import MAX_TRIES, RunQuerySet
from leaderboard.read_model import summary
from leaderboard.runs.claims import NO_PROGRESS, Holding, LeaseLost, held, host_of, lease_end
from leaderboard.runs.report_checks import check_origin, check_report
from leaderboard.runs.reports import as_text, check_length, clean, columns_of, decoded

NO_LEASE: dict[str, object] = {"lease_token": None, "lease_until": None}
ERROR_LIMIT = 10_000


def heartbeat(run_id: UUID, holding: Holding, progress: object) -> bool:
    """Extend the lease and store the progress; return True if the run shall be cancelled. Raises
    LeaseLost, RequestError for a progress that is none, and for a run that its host has had for
    longer than any takes: it waits for another try."""
    step = decoded(Progress, progress, "progress")
    if not 0 <= step.done <= step.total < 1 << 31:
        raise RequestError("bad_progress", "done must lie between 0 and total.", "Mend the worker.")
    own = held(run_id, holding)
    longest = timedelta(seconds=settings.PKB_RUN_S)
    if own.filter(started_at__lt=Now() - longest).exists():
        fail(run_id, holding, f"The host had the run for over {settings.PKB_RUN_S} s.")
        raise LeaseLost
    changed = own.update(
        lease_until=lease_end(),
        phase=step.phase,
        progress_done=step.done,
        progress_total=step.total,
    )
    if not changed:
        raise LeaseLost
    return Run.objects.values_list("cancel_requested", flat=True).get(pk=run_id)


def finish(run_id: UUID, holding: Holding, report: object) -> None:
    """Store a report, its summary and the new data version together, or nothing of them.

    Raises LeaseLost, and RequestError for a report that does not fit the run: it is kept for staff,
    and the run waits for another try, of which it has MAX_TRIES. The fault is a host's, so it never
    counts against a kernel, and a host that lies does not keep a run for ever.
    """
    run = Run.objects.with_names().filter(pk=run_id).first()
    if run is None:
        raise LeaseLost
    try:
        _store(run, holding, report)
    except LeaseLost:
        raise
    except RequestError as error:
        _refuse(run, holding, report, error)
        raise


def _store(run: Run, holding: Holding, report: object) -> None:
    check_length(json.dumps(report))
    found = decoded(Report, report, "report")
    judged = columns_of(found)
    check_report(run, found, _catalogued(run.kernel.problem_id))
    check_origin(run, found, host_of(run, run.host))
    if found.verdict is Verdict.INFRA_ERROR:
        return fail(run.pk, holding, found.message)
    if found.verdict is Verdict.HOST_UNSUPPORTED:
        return _decline(run, holding, found.message)
    cancelled = found.verdict is Verdict.CANCELLED
    status = Status.CANCELLED if cancelled else Status.DONE
    columns = {**judged, **NO_LEASE, "status": status}
    with transaction.atomic():
        # Two runs of one submission that end together must see each other in the summary.
        own = Submission.objects.filter(pk=run.kernel.submission_id)
        trust, owner = own.select_for_update().values_list("trust", "owner").get()
        columns["finished_at"] = ended = timezone.now()
        for name, value in columns.items():
            setattr(run, name, value)
        if not held(run.pk, holding).update(**columns):
            raise LeaseLost
        summary.update(run)
        if run.has_counted_verdict and trust not in (run.trust, Trust.VERIFIED):
            own.update(trust=run.trust)
        Notice.objects.judged(run.kernel.submission_id)
        JudgeUse.objects.add(owner, run.hardware_id, run.started_at, ended)
        DataVersion.objects.bump()
    return None


def _catalogued(problem_id: int) -> JsonDict:
    """Return of a problem only what a report is checked against: the rest is long."""
    names = ("sizes", "costs", "work_share")
    asked = Problem.objects.values_list(*(f"payload__{name}" for name in names))
    return dict(zip(names, asked.get(pk=problem_id), strict=True))


def _refuse(run: Run, holding: Holding, report: object, error: RequestError) -> None:
    """Keep what was not believed, and take the run from its worker. Raises LeaseLost."""
    with transaction.atomic():
        why = f"{run.host} sent a report that was refused: {error.message}"
        if not _give_up(held(run.pk, holding), why, rung_at=Now()):
            raise LeaseLost
        RefusedReport.objects.keep(
            run,
            holding.token_id,
            code=error.code,
            reason=clean(error.message),
            body=as_text(report),
        )


def fail(run_id: UUID, holding: Holding, error: str) -> None:
    """Let a run wait for another try after a fault of ours, MAX_TRIES in all. Raises LeaseLost.

    Workers are not told at once: a host that just failed would take the run again.
    """
    with transaction.atomic():
        if not _give_up(held(run_id, holding), error, rung_at=Now()):
            raise LeaseLost


def _decline(run: Run, holding: Holding, reason: str) -> None:
    """Let a run wait for another host, as if this one had never leased it. Raises LeaseLost."""
    leased = held(run.pk, holding)
    unclaimed = {"status": Status.QUEUED, "host": "", "started_at": None, "rung_at": None}
    with transaction.atomic():
        going_on = leased.filter(cancel_requested=False)
        if going_on.update(tries=F("tries") - 1, **unclaimed, **NO_PROGRESS, **NO_LEASE):
            Decline.objects.keep(run, clean(reason))
        elif leased.update(**_cancelled("Cancelled while it ran.", timezone.now())):
            DataVersion.objects.bump()
        else:
            raise LeaseLost


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


def cancel_waiting(submission_id: int) -> None:
    """End the waiting runs of a submission; those that are being judged go on."""
    waiting = Run.objects.queued().filter(kernel__submission=submission_id)
    waiting.update(**_cancelled("Cancelled before it ran.", timezone.now()))


def cancel_waiting_of(owner_id: int) -> int:
    """End all waiting runs of an account; those that are being judged go on. Returns how many."""
    waiting = Run.objects.queued().filter(kernel__submission__owner=owner_id)
    return waiting.update(**_cancelled("Cancelled before it ran.", timezone.now()))


def give_up_lost() -> int:
    """Queue again every run whose lease ended without a word; return how many."""
    lost = Run.objects.running().filter(lease_until__lt=Now())
    given_up = 0
    for run_id, token, host in lost.values_list("id", "lease_token", "host"):
        with transaction.atomic():
            still = lost.filter(pk=run_id, lease_token=token)
            given_up += _give_up(still, f"{host} went silent.", rung_at=None)
    return given_up


def _give_up(leased: RunQuerySet, error: str, rung_at: Now | None) -> int:
    """Take a run out of its worker's hands: cancelled, queued again, or failed for good."""
    now = timezone.now()
    error = clean(error)[:ERROR_LIMIT]
    queued = {"status": Status.QUEUED, "phase": None, "rung_at": rung_at, "last_error": error}
    going_on = leased.filter(tries__lt=MAX_TRIES, cancel_requested=False)
    if going_on.update(**queued, **NO_LEASE):
        return 1
    if leased.filter(cancel_requested=True).update(**_cancelled("Cancelled while it ran.", now)):
        DataVersion.objects.bump()
        return 1
    whose = list(leased.values_list("kernel__submission", flat=True))
    failed = leased.update(
        status=Status.FAILED,
        verdict=Verdict.INFRA_ERROR,
        message=f"The evaluation failed {MAX_TRIES} times for reasons of ours; it does not count.",
        last_error=error,
        finished_at=now,
        **NO_LEASE,
    )
    if failed:
        for submission_id in whose:
            Notice.objects.judged(submission_id)
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
