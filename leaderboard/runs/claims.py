"""Decides which worker may have a run, and hands it out under a lease."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from evaluator import Backend, Device, Dtype, Job, Profile, limits_of
from evaluator.messages.codec import encode
from evaluator.messages.job import Placement
from leaderboard.kit.request_error import RequestError
from leaderboard.models import ApiToken, HostState, Judgement, Run, Status, WorkerHost
from leaderboard.models.runs import MAX_TRIES, RunQuerySet
from leaderboard.models.waiting import has_to_wait

NO_PROGRESS: dict[str, object] = {"phase": None, "progress_done": 0, "progress_total": 0}
# What a worker may take: a run that waits, and one whose lease has ended.
FREE = Q(status=Status.QUEUED) | Q(status=Status.RUNNING, lease_until__lt=Now())


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """Holds what a worker says of itself when it asks for a run, and the token it asks with."""

    token: ApiToken
    host: str
    isolation: str
    judge_version: str


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Holds what every later call about a leased run must show: the lease's token, and with which
    API token the call was made. One without the other is worth nothing."""

    lease_token: str
    token_id: int


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Holds a leased run: the job, and what its worker must show from now on."""

    job: Job
    holding: Holding
    tries: int

    @property
    def encoded_job(self) -> dict[str, object]:
        return dict(encode(self.job))


class LeaseLost(RequestError):
    """Reports that the run is not this worker's, or no longer."""

    def __init__(self) -> None:
        message = "The run is finished or belongs to another worker."
        super().__init__("fenced", message, "Stop the evaluation and drop it.", status=409)


class OthersFirst(LeaseLost):
    """Reports that a run waits for the host that is to be judged before this one."""


class HoldsEnough(LeaseLost):
    """Reports that the host has as many runs as its token allows."""


class OutOfService(RequestError):
    """Reports that staff have taken a host out of service."""

    def __init__(self, host: str, state: str) -> None:
        message = f"{host} is {state}: it is given no runs."
        if state == HostState.DISABLED:
            message = f"{host} is disabled: it is given no runs, and its reports are not taken."
        fix = "Leave the run to others until staff let this host serve again."
        super().__init__(f"host_{state}", message, fix, status=409)


def lease(run_id: UUID, by: Claimant) -> Lease:
    """Lease a run that waits, or whose worker went silent, that this host has not declined and
    has what it needs for.

    Raises LeaseLost where there is none, OthersFirst while another run goes first on this host,
    HoldsEnough for a host that has as many as it may; OutOfService, RequestError `may_not_claim`
    for a worker that may not have it.
    """
    run = Run.objects.with_names().select_related("kernel__source").filter(pk=run_id).first()
    if run is None:
        raise LeaseLost
    told = may_claim(run, by, host_of(run, by.host))
    try:
        if told.state != HostState.SERVING:
            raise OutOfService(by.host, told.state)
        if run.status == Status.QUEUED and has_to_wait(run, told):
            raise OthersFirst
        with transaction.atomic():
            check_share(by, told)
            holding = _leased(run, by, told)
    except (OutOfService, OthersFirst, HoldsEnough):
        Run.objects.queued().filter(pk=run_id).update(rung_at=None)  # others hear at the next sweep
        raise
    return Lease(job=_job(run), holding=holding, tries=run.tries + 1)


def check_share(by: Claimant, told: WorkerHost) -> None:
    """Raise HoldsEnough for a host that has a run, or a judgement of training, for each of its
    groups of GPUs. Other claims of it wait for the transaction: two at once would count alike."""
    list(WorkerHost.objects.select_for_update().filter(pk=told.pk).values_list("pk"))
    held = {"hardware": told.queue, "host": by.host, "lease_until__gte": Now()}
    own = Run.objects.running().filter(**held).count()
    if own + Judgement.objects.running().filter(**held).count() >= by.token.groups:
        raise HoldsEnough


def _leased(run: Run, by: Claimant, told: WorkerHost) -> Holding:
    """Give a run to a worker. Raises LeaseLost where it is not free, or not for this host."""
    holding = Holding(lease_token=secrets.token_urlsafe(32), token_id=by.token.pk)
    wanted = Run.objects.not_declined_by(by.host).filter(cancel_requested=False)
    # As many tries as were read, and fewer than allowed: whoever was quicker has added one.
    same = wanted.fit_for(told.abilities).filter(FREE, pk=run.pk, tries=run.tries)
    leased = same.filter(tries__lt=MAX_TRIES).update(
        tries=run.tries + 1, **NO_PROGRESS, **lease_of(by, holding)
    )
    if not leased:
        raise LeaseLost
    return holding


def lease_of(by: Claimant, holding: Holding) -> dict[str, Any]:
    """Return the columns of a run, or a judgement of training, that a worker holds from now on."""
    return {
        "status": Status.RUNNING,
        "host": by.host,
        "token": by.token,
        "lease_token": holding.lease_token,
        "lease_until": lease_end(),
        "started_at": Now(),
    }


def may_claim(run: Run, by: Claimant, told: WorkerHost | None) -> WorkerHost:
    """Raise RequestError unless this worker may judge this run; return its host's entry, which is
    `told`, for the run's class of hardware."""
    if told is None or told.token_id != by.token.pk:
        raise _refused(f"{by.host} has not said hello with this token for {run.hardware_id}.")
    if not by.token.allows(queue=run.hardware_id, host=by.host):
        raise _refused(f"The token is not for {run.hardware_id} on {by.host}.")
    for name in ("isolation", "judge_version"):
        now, before = getattr(by, name), getattr(told, name)
        if now != before:
            raise _refused(f"{name} is {now} now and was {before} at hello.")
    return told


def _refused(message: str) -> RequestError:
    fix = "Say hello first, from this host, with this token and of its own class of hardware."
    return RequestError("may_not_claim", message, fix, status=403)


def host_of(run: Run, host: str) -> WorkerHost | None:
    """Return what a host told of itself in the run's class of hardware."""
    return WorkerHost.objects.filter(host=host, queue=run.hardware_id).first()


def check_enabled(run_id: UUID) -> None:
    """Raise OutOfService where the host that has a run is disabled."""
    disabled = WorkerHost.objects.filter(
        state=HostState.DISABLED, host=OuterRef("host"), queue=OuterRef("hardware")
    )
    run = Run.objects.running().filter(pk=run_id)
    host = run.filter(Exists(disabled)).values_list("host", flat=True).first()
    if host:
        raise OutOfService(host, HostState.DISABLED)


def held(run_id: UUID, holding: Holding) -> RunQuerySet:
    """Return the run if it runs and this is who leased it, to update it on that condition."""
    return Run.objects.running().filter(
        pk=run_id, lease_token=holding.lease_token, token=holding.token_id
    )


def lease_end() -> CombinedExpression:
    """Return when a lease given now ends, by the database's clock: those of web hosts differ."""
    return Now() + timedelta(seconds=settings.PKB_LEASE_S)


def _job(run: Run) -> Job:
    device = Device(run.device)
    return Job(
        problem=run.kernel.problem.slug,
        source=run.kernel.source.held_text,
        backend=Backend(run.kernel.backend),
        world_size=run.world_size,
        size=run.size,
        dtype=Dtype(run.dtype),
        profile=Profile(run.profile),
        device=device,
        placement=Placement(run.placement),
        limits=limits_of(device),
    )
