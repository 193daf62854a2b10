"""Stores by the hour how long each account's kernels were judged: who used least goes first."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Sum
from django.utils import timezone

from leaderboard.models.teams import whose

WINDOW = timedelta(hours=24)


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


class JudgeUseQuerySet(models.QuerySet["JudgeUse"]):
    def add(self, owner: int, hardware: str, began: datetime | None, ended: datetime) -> None:
        """Count what judging a run took, towards the hour that it ended in."""
        seconds = max(0.0, (ended - began).total_seconds()) if began else 0.0
        where = {"owner_id": owner, "hardware_id": hardware, "hour": hour_of(ended)}
        self.bulk_create([JudgeUse(**where)], ignore_conflicts=True)
        self.filter(**where).update(seconds=F("seconds") + seconds)

    def lately(self, hardware: str) -> dict[int, float]:
        """Return by person the seconds in which their kernels were judged on a class of hardware in
        the last WINDOW, to the hour; those of their teams are theirs."""
        since = hour_of(timezone.now() - WINDOW)
        recent = self.filter(hardware=hardware, hour__gte=since).order_by()
        named = recent.annotate(person=whose("owner")).values_list("person")
        return dict(named.annotate(total=Sum("seconds")))


class JudgeUse(models.Model):
    """Counts for an account what judging its kernels took on a class of hardware in an hour."""

    hardware = models.ForeignKey("leaderboard.Hardware", models.PROTECT, db_index=False)
    hour = models.DateTimeField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    seconds = models.FloatField(default=0)

    objects = JudgeUseQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("hardware", "hour", "owner"), name="judge_use_once"),
            models.CheckConstraint(condition=Q(seconds__gte=0), name="judge_use_not_negative"),
        )

    def __str__(self) -> str:
        return f"{self.owner_id} {self.hardware_id} {self.hour}"
