"""Answers in which order queued runs are judged: ranked ones first, then practice; of each, those
of the person who used the judge least lately, with their teams, and of one person by age."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from leaderboard.models.access import WorkerHost, heard_lately
from leaderboard.models.choices import HostState, Status
from leaderboard.models.judge_use import JudgeUse
from leaderboard.models.runs import MAX_TRIES, Run, RunQuerySet
from leaderboard.models.teams import person_of, whose

# What an error of a try holds, and what readers are told of it. The error itself may quote more.
FAILED_TRIES = (
    ("while it took times", "the host was too noisy to time it"),
    ("the judge was away", "the host was too busy to judge it"),
    ("went silent", "its host went silent"),
    ("a report that was refused", "this site refused its host's report"),
    ("The host had the run for over", "its host took too long"),
    ("the host ran out of memory", "its host ran out of memory"),
)
OUR_FAULT = "the judge failed, for a reason of ours"
RANKED = Q(kernel__submission__is_practice=False)
PRACTICE, OWNER = "kernel__submission__is_practice", "kernel__submission__owner"


class QueueShare(NamedTuple):
    """Holds what waits of a person, by what it is served in: practice after what is ranked, then
    by the seconds that the judge was theirs lately, then by how long it has waited."""

    is_practice: bool
    used_s: float
    since: datetime
    person: int
    owners: list[int]
    runs: int


def used_lately(hardware: str) -> dict[int, float]:
    """Return by person the seconds that they used a class of hardware, with what is running."""
    used = JudgeUse.objects.lately(hardware)
    now = timezone.now()
    going_on = Run.objects.running().filter(hardware=hardware).order_by()
    for person, began in going_on.values_list(whose(OWNER), "started_at"):
        used[person] = used.get(person, 0.0) + max(0.0, (now - began).total_seconds())
    return used


def shares(waiting: RunQuerySet, used: Mapping[int, float]) -> list[QueueShare]:
    """Return the persons who wait, the one who is served next first."""
    groups = waiting.order_by().annotate(person=whose(OWNER)).values_list(PRACTICE, OWNER, "person")
    found = dict[tuple[bool, int], QueueShare]()
    rows = groups.annotate(since=Min("created_at"), count=Count("pk"))
    for is_practice, owner, person, since, count in rows:
        none = QueueShare(is_practice, used.get(person, 0.0), since, person, [], 0)
        there = found.get((is_practice, person), none)
        found[is_practice, person] = there._replace(
            since=min(since, there.since), owners=[*there.owners, owner], runs=there.runs + count
        )
    return sorted(found.values())


def first_of(waiting: RunQuerySet, used: Mapping[int, float], most: int) -> list[UUID]:
    """Return the ids of the runs that are judged next, `most` at most."""
    found: list[UUID] = []
    for share in shares(waiting, used):
        if len(found) == most:
            break
        own = waiting.filter(**{PRACTICE: share.is_practice, f"{OWNER}__in": share.owners})
        by_age = own.order_by("created_at", "id").values_list("id", flat=True)
        found += by_age[: most - len(found)]
    return found


def ahead_of(run: Run) -> int:
    """Count the queued runs of the same hardware that are judged before this one.

    One that a host declined, or that none has the abilities for, does not count: nobody has to wait
    for it.
    """
    known = WorkerHost.objects.filter(queue=run.hardware_id)
    waiting = Run.objects.queued().filter(hardware=run.hardware_id)
    waiting = waiting.filter(declines=None).fit_for(known.abilities())
    submission = run.kernel.submission
    earlier = Q(created_at__lt=run.created_at) | Q(created_at=run.created_at, id__lt=run.id)
    before = 0
    for share in shares(waiting, used_lately(run.hardware_id)):
        if share.is_practice == submission.is_practice and submission.owner_id in share.owners:
            own = {PRACTICE: share.is_practice, f"{OWNER}__in": share.owners}
            return before + waiting.filter(earlier, **own).count()
        before += share.runs
    return before


def waited_s(run: Run) -> int:
    """Return the seconds that a run has waited since it was asked for: until now, or until its last
    try began."""
    until = None if run.status == Status.QUEUED else run.started_at or run.finished_at
    return max(0, round(((until or timezone.now()) - run.created_at).total_seconds()))


def tried(run: Run) -> str | None:
    """Say in sentences what became of the tries of a run that waits again, and from when on the
    next one may begin; None of any other run."""
    if run.status != Status.QUEUED or not run.tries:
        return None
    times = "once" if run.tries == 1 else f"{run.tries} times"
    at = f" at {_clock(run.started_at)}" if run.started_at else ""
    last = at if run.tries == 1 or not at else f", last{at}"
    why = next((why for word, why in FAILED_TRIES if word in run.last_error), OUR_FAULT)
    rings = (run.rung_at or timezone.now()) + timedelta(seconds=settings.PKB_RERING_S)
    then = f"after {_clock(rings)}" if rings > timezone.now() else "when a host is free"
    left = f"try {run.tries + 1} of {MAX_TRIES}"
    return f"Tried {times}{last}: {why}. Next try {then} ({left}); it costs the kernel nothing."


def _clock(moment: datetime) -> str:
    """Return `11:02 UTC`, with the date of another day."""
    is_today = moment.date() == timezone.now().date()
    return f"{moment:%H:%M} UTC" if is_today else f"{moment:%Y-%m-%d %H:%M} UTC"


def without_host(queues: Collection[str]) -> dict[str, str]:
    """Return of these classes of hardware those that no host serves now, each with a sentence that
    says when one was last heard from."""
    seen: dict[str, datetime] = {}
    served = set()
    hosts = WorkerHost.objects.filter(queue__in=set(queues)).annotate(is_alive=heard_lately())
    rows = hosts.values_list("queue", "last_seen_at", "is_alive", "state") if queues else ()
    for queue, at, is_alive, state in rows:
        seen[queue] = max(at, seen.get(queue, at))
        if is_alive and state == HostState.SERVING:
            served.add(queue)
    return {one: _no_host(one, seen.get(one)) for one in set(queues) - served}


def no_host(run: Run) -> str | None:
    """Return that sentence of a run that waits; None where a host serves, or it waits no more."""
    if run.status != Status.QUEUED:
        return None
    return without_host([run.hardware_id]).get(run.hardware_id)


def _no_host(queue: str, seen: datetime | None) -> str:
    last = (
        f"the last was heard from on {seen:%Y-%m-%d %H:%M} UTC"
        if seen
        else "none ever was heard from"
    )
    return f"No host of {queue} judges now; {last}. Runs wait, and start when one is there."


def offered(waiting: RunQuerySet, host: WorkerHost) -> RunQuerySet:
    """Return those of the waiting runs of its hardware that a host can take."""
    return waiting.not_declined_by(host.host).fit_for(host.abilities)


def has_to_wait(run: Run, host: WorkerHost) -> bool:
    """Return whether something waits that this host can take and has to take first: a ranked run
    before practice, and one of a person who used less."""
    waiting = Run.objects.queued().filter(hardware=host.queue, cancel_requested=False)
    waiting = offered(waiting, host)
    submission = run.kernel.submission
    if submission.is_practice and waiting.filter(RANKED).exists():
        return True
    used = used_lately(host.queue)
    own = used.get(person_of(submission.owner_id), 0.0)
    alike = waiting.filter(**{PRACTICE: submission.is_practice})
    return own > 0 and any(share.used_s < own for share in shares(alike, used))
