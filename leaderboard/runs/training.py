"""Gives judgements of training to hosts, and takes what they find: as runs, after all of them."""

from __future__ import annotations

import json
import logging
import secrets
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from evaluator import Backend, Device, Dtype, Job, Profile, Report, Verdict, limits_of
from evaluator.messages.feedback import training_report
from evaluator.messages.job import Placement
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.request_error import RequestError
from leaderboard.models import HostState, Judgement, Run, Status, WorkerHost
from leaderboard.models.runs import MAX_TRIES
from leaderboard.models.training import JudgementQuerySet
from leaderboard.models.waiting import offered
from leaderboard.runs.claims import (
    FREE,
    Claimant,
    Holding,
    HoldsEnough,
    Lease,
    LeaseLost,
    OthersFirst,
    OutOfService,
    check_share,
    host_of,
    lease_end,
    lease_of,
    may_claim,
)
from leaderboard.runs.report_checks import check_origin, check_report
from leaderboard.runs.reports import check_length, clean, columns_of, decoded

log = logging.getLogger(__name__)
NO_LEASE: dict[str, object] = {"lease_token": None, "lease_until": None}
GAVE_UP = f"The judge failed {MAX_TRIES} times for reasons of ours; it does not count."


def is_one(judgement_id: UUID) -> bool:
    """Return True if this id is that of a judgement of training."""
    return Judgement.objects.filter(pk=judgement_id).exists()


def lease(judgement_id: UUID, by: Claimant) -> Lease:
    """Lease a judgement that waits, or whose worker went silent. Raises what claims.lease does;
    OthersFirst also while any run waits that this host can take."""
    one = Judgement.objects.select_related("problem").filter(pk=judgement_id).first()
    if one is None:
        raise LeaseLost
    run = one.as_run()
    told = may_claim(run, by, host_of(run, by.host))
    try:
        if told.state != HostState.SERVING:
            raise OutOfService(by.host, told.state)
        waiting = Run.objects.queued().filter(hardware=told.queue, cancel_requested=False)
        if offered(waiting, told).exists():
            raise OthersFirst
        with transaction.atomic():
            check_share(by, told)
            holding = _leased(one, by, told)
    except (OutOfService, OthersFirst, HoldsEnough):
        Judgement.objects.queued().filter(pk=one.pk).update(rung_at=None)
        raise
    return Lease(job=_job(one), holding=holding, tries=one.tries + 1)


def _leased(one: Judgement, by: Claimant, told: WorkerHost) -> Holding:
    holding = Holding(lease_token=secrets.token_urlsafe(32), token_id=by.token.pk)
    same = Judgement.objects.fit_for(told.abilities).filter(FREE, pk=one.pk, tries=one.tries)
    leased = same.filter(tries__lt=MAX_TRIES).update(tries=F("tries") + 1, **lease_of(by, holding))
    if not leased:
        raise LeaseLost
    return holding


def _job(one: Judgement) -> Job:
    device = Device(one.device)
    return Job(
        problem=one.problem.slug,
        source=one.source,
        backend=Backend(one.backend),
        world_size=one.world_size,
        size=one.size,
        dtype=Dtype(one.dtype),
        profile=Profile(one.profile),
        device=device,
        placement=Placement(one.placement),
        limits=limits_of(device),
        secret=one.secret or None,
    )


def held(judgement_id: UUID, holding: Holding) -> JudgementQuerySet:
    """Return the judgement if it runs and this is who leased it, to update it on that condition."""
    return Judgement.objects.running().filter(
        pk=judgement_id, lease_token=holding.lease_token, token=holding.token_id
    )


def check_enabled(judgement_id: UUID) -> None:
    """Raise OutOfService where the host that has a judgement is disabled."""
    found = Judgement.objects.running().filter(pk=judgement_id).values_list("host", "hardware")
    for host, queue in found:
        if WorkerHost.objects.filter(host=host, queue=queue, state=HostState.DISABLED).exists():
            raise OutOfService(host, HostState.DISABLED)


def heartbeat(judgement_id: UUID, holding: Holding) -> bool:
    """Extend the lease. Raises LeaseLost, also for a host that has had it for longer than any
    takes: then it waits for another try."""
    own = held(judgement_id, holding)
    if own.filter(started_at__lt=Now() - timedelta(seconds=settings.PKB_RUN_S)).exists():
        fail(judgement_id, holding)
        raise LeaseLost
    if not own.update(lease_until=lease_end()):
        raise LeaseLost
    return False


def finish(judgement_id: UUID, holding: Holding, report: object) -> None:
    """Store what its sender may read of a report. Raises LeaseLost, and RequestError for a report
    that does not fit: then the judgement waits for another try."""
    one = Judgement.objects.select_related("problem").filter(pk=judgement_id).first()
    if one is None:
        raise LeaseLost
    try:
        found = _checked(one, report)
    except RequestError as error:
        log.warning("a report of judgement %s was refused: %s", one.pk, error.message)
        fail(judgement_id, holding)
        raise
    if found.verdict in (Verdict.INFRA_ERROR, Verdict.CANCELLED):
        fail(judgement_id, holding)
    elif not held(judgement_id, holding).update(**_ended(outcome(found))):
        raise LeaseLost


def _checked(one: Judgement, report: object) -> Report:
    check_length(json.dumps(report))
    found = decoded(Report, report, "report")
    run = one.as_run()
    problem = {name: one.problem.payload.get(name) for name in ("sizes", "costs", "work_share")}
    check_report(run, found, problem)
    check_origin(run, found, host_of(run, run.host))
    return found


def outcome(report: Report) -> JsonDict:
    """Return a sender's part of a report: nothing that says what inputs or answers were."""
    columns_of(report)  # which refuses numbers that are not finite
    return dict(clean(training_report(report)))


def _ended(told: JsonDict, status: Status = Status.DONE) -> dict[str, object]:
    """Return the columns of one that has ended: source and secret are needed no more."""
    over = {"status": status, "finished_at": timezone.now(), "outcome": told}
    return {**over, **NO_LEASE, "packed": b"", "secret": ""}


def fail(judgement_id: UUID, holding: Holding) -> None:
    """Let a judgement wait for another try after a fault of ours. Raises LeaseLost."""
    if not _give_up(held(judgement_id, holding), rung_at=Now()):
        raise LeaseLost


def give_up_lost() -> int:
    """Queue again every judgement whose lease ended without a word; return how many."""
    return _give_up(Judgement.objects.running().filter(lease_until__lt=Now()), rung_at=None)


def _give_up(leased: JudgementQuerySet, rung_at: Now | None) -> int:
    again = leased.filter(tries__lt=MAX_TRIES)
    count = again.update(status=Status.QUEUED, rung_at=rung_at, **NO_LEASE)
    told = {"verdict": Verdict.INFRA_ERROR.value, "feedback": GAVE_UP}
    return count + leased.update(**_ended(told, Status.FAILED))
