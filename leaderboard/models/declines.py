"""Stores which hosts said of a run that they lack what it needs."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from leaderboard.kit.visible import visible
from leaderboard.models.runs import OPEN, Run

REASON_LIMIT = 300
# A host may come back under a new name each time, and decline each time.
MOST_TOLD = 10
TOLD = ("host", "reason", "declined_at")


class DeclineQuerySet(models.QuerySet["Decline"]):
    def keep(self, run: Run, reason: str) -> None:
        """Store why the host that has this run cannot judge it: one line, without NUL."""
        line = visible(" ".join(reason.split()))[:REASON_LIMIT] or "it gave no reason"
        values = {"reason": line, "declined_at": timezone.now()}
        self.update_or_create(host=run.host, run=run, defaults=values)

    def forget(self, host: str, queue: str) -> None:
        """Let a host be asked again; what it said of runs that have ended stays."""
        self.filter(host=host, run__hardware=queue, run__status__in=OPEN).delete()

    def told(self, run: Run) -> list[dict[str, Any]]:
        """Return the newest of a run, as API and pages show them."""
        return list(self.filter(run=run).values(*TOLD)[:MOST_TOLD])


class Decline(models.Model):
    """Keeps a run that a host declined from it, until its hello tells of something new."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="declines")
    host = models.CharField(max_length=200)
    reason = models.CharField(max_length=REASON_LIMIT)
    declined_at = models.DateTimeField()

    objects = DeclineQuerySet.as_manager()

    class Meta:
        ordering = ("-declined_at", "-id")
        constraints = (
            models.UniqueConstraint(fields=("host", "run"), name="decline_once"),
            models.CheckConstraint(
                condition=~Q(host="") & ~Q(reason=""), name="decline_has_host_and_reason"
            ),
        )

    def __str__(self) -> str:
        return f"{self.host} declined: {self.reason}"
