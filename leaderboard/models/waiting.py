"""Answers in which order queued runs are judged: ranked ones first, then practice, each by age."""

from __future__ import annotations

from django.db.models import Q

from leaderboard.models.access import WorkerHost
from leaderboard.models.runs import Run, RunQuerySet

RANKED = Q(kernel__submission__is_practice=False)
IN_ORDER = ("kernel__submission__is_practice", "created_at", "id")


def ahead_of(run: Run) -> int:
    """Count the queued runs of the same hardware that are judged before this one.

    One that a host declined, or that none has the abilities for, does not count: nobody has to wait
    for it.
    """
    earlier = Q(created_at__lt=run.created_at) | Q(created_at=run.created_at, id__lt=run.id)
    before = RANKED | earlier if run.kernel.submission.is_practice else RANKED & earlier
    waiting = Run.objects.queued().filter(before, hardware=run.hardware_id)
    known = WorkerHost.objects.filter(queue=run.hardware_id)
    return waiting.filter(declines=None).fit_for(known.abilities()).count()


def offered(waiting: RunQuerySet, host: WorkerHost) -> RunQuerySet:
    """Return those of the waiting runs of its hardware that a host can take."""
    return waiting.not_declined_by(host.host).fit_for(host.abilities)


def has_ranked(host: WorkerHost) -> bool:
    """Return whether a ranked run waits that this host can take."""
    waiting = Run.objects.queued().filter(RANKED, hardware=host.queue, cancel_requested=False)
    return offered(waiting, host).exists()
