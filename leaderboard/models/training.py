"""Stores what training asks the judge: nothing of it is a submission, and none of it is kept."""

from __future__ import annotations

import secrets
import uuid
import zlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Min, Q, Sum
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from leaderboard.models.access import ApiToken
from leaderboard.models.catalogue import Hardware, Problem
from leaderboard.models.choices import (
    BACKENDS,
    DEVICES,
    DTYPES,
    PLACEMENTS,
    PROFILES,
    Status,
    one_of,
)
from leaderboard.models.runs import MAX_TRIES, NO_LEASE, OPEN, Run, fitting
from leaderboard.models.submissions import Kernel
from leaderboard.models.teams import whose

MAX_KEY = 64
MOST_OF_A_GROUP = 256
MOST_GROUPS = 16_384  # of an account at a time
LATELY, NO_TIME = timedelta(minutes=10), timedelta()


class TrainingGroupQuerySet(models.QuerySet["TrainingGroup"]):
    def secrets_of(self, owner: int, names: Iterable[str]) -> dict[str, str]:
        """Return by name the secret that an account's groups share; new groups draw one."""
        wanted = set(names)
        own = {"owner_id": owner}
        made = [TrainingGroup(**own, name=name, secret=new_secret()) for name in sorted(wanted)]
        self.bulk_create(made, ignore_conflicts=True)
        return dict(self.filter(owner=owner, name__in=wanted).values_list("name", "secret"))

    def expire(self) -> int:
        """Forget groups that are old: a later one of the same name has another secret."""
        return self.filter(created_at__lt=_oldest()).delete()[0]


def new_secret() -> str:
    """Return 16 random bytes, as a job takes them."""
    return secrets.token_hex(16)


class TrainingGroup(models.Model):
    """Holds the secret that makes the inputs of a group's judgements equal. Judging hosts get it,
    and nobody else."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=MAX_KEY)
    secret = models.CharField(max_length=32)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TrainingGroupQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("owner", "name"), name="training_group_once"),
        )
        indexes = (models.Index(fields=("created_at",), name="training_group_age"),)

    def __str__(self) -> str:
        return f"{self.owner_id} {self.name}"


class JudgementQuerySet(models.QuerySet["Judgement"]):
    def queued(self) -> JudgementQuerySet:
        return self.filter(status=Status.QUEUED)

    def running(self) -> JudgementQuerySet:
        return self.filter(status=Status.RUNNING)

    def open(self) -> JudgementQuerySet:
        return self.filter(status__in=OPEN)

    def fit_for(self, abilities: Iterable[str] | None) -> JudgementQuerySet:
        """Return those that need no more than a host has, as RunQuerySet.fit_for does."""
        return fitting(self, abilities)

    def next_ids(self, most: int) -> list[uuid.UUID]:
        """Return the ids of those that are judged next: of the person whose kernels took least of
        the judge lately, and of one person the oldest."""
        used = _used_lately()
        waiting = self.order_by().annotate(person=whose("owner"))
        rows = waiting.values_list("person").annotate(since=Min("created_at"))
        found: list[uuid.UUID] = []
        for person, _ in sorted(rows, key=lambda row: (used.get(row[0], NO_TIME), row[1])):
            own = waiting.filter(person=person).order_by("created_at", "id")
            found += own.values_list("id", flat=True)[: most - len(found)]
            if len(found) == most:
                break
        return found

    def expire(self) -> int:
        """Delete what has ended, or waits, for longer than the site keeps it."""
        old = Q(finished_at__lt=_oldest()) | Q(status=Status.QUEUED, created_at__lt=_oldest())
        return self.filter(old).delete()[0]


def _used_lately() -> dict[int, timedelta]:
    """Return by person the time that hosts have spent on what they began lately."""
    begun = Judgement.objects.filter(started_at__gte=timezone.now() - LATELY).order_by()
    took = Coalesce(F("finished_at"), Now(), output_field=models.DateTimeField()) - F("started_at")
    named = begun.annotate(person=whose("owner")).values_list("person")
    return dict(named.annotate(took=Sum(took, output_field=models.DurationField())))


def _oldest() -> Any:
    return timezone.now() - timedelta(seconds=settings.PKB_TRAINING_KEEP_S)


class Judgement(models.Model):
    """Records one kernel that training has judged. `key` is its sender's name for it, `digest` that
    of all that was asked under this name.

    It is leased as a run is. Source and secret are forgotten as soon as it has ended; `outcome` is
    what its sender reads.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=MAX_KEY)
    digest = models.CharField(max_length=64)
    problem = models.ForeignKey(Problem, models.CASCADE, related_name="+")
    problem_digest = models.CharField(max_length=64)
    source_digest = models.CharField(max_length=64)
    packed = models.BinaryField()
    secret = models.CharField(max_length=32, blank=True)
    group = models.CharField(max_length=MAX_KEY, blank=True, default="")
    backend = models.CharField(max_length=16, choices=BACKENDS)
    hardware = models.ForeignKey(Hardware, models.CASCADE, related_name="+")
    device = models.CharField(max_length=8, choices=DEVICES)
    world_size = models.PositiveSmallIntegerField()
    size = models.CharField(max_length=32)
    dtype = models.CharField(max_length=16, choices=DTYPES)
    profile = models.CharField(max_length=16, choices=PROFILES)
    placement = models.CharField(max_length=8, choices=PLACEMENTS)
    needs = models.CharField(max_length=200, blank=True, default="")

    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    rung_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    host = models.CharField(max_length=200, blank=True)
    token = models.ForeignKey(ApiToken, models.SET_NULL, null=True, related_name="+")
    lease_token = models.CharField(max_length=64, null=True)  # noqa: DJ001  None: not leased
    lease_until = models.DateTimeField(null=True)
    outcome: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(
        null=True
    )

    objects = JudgementQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            one_of("status", Status.choices, "judgement_status_known"),
            models.UniqueConstraint(fields=("owner", "key"), name="judgement_once"),
            models.CheckConstraint(condition=Q(tries__lte=MAX_TRIES), name="judgement_tries"),
            models.CheckConstraint(
                condition=Q(status="running", lease_token__isnull=False, lease_until__isnull=False)
                | ~Q(status="running") & NO_LEASE,
                name="judgement_leased_while_running",
            ),
            models.CheckConstraint(
                condition=Q(status__in=OPEN, outcome=None, finished_at=None)
                | ~Q(status__in=OPEN) & Q(outcome__isnull=False, finished_at__isnull=False),
                name="judgement_ended_has_outcome",
            ),
        )
        indexes = (
            models.Index(fields=("hardware", "status", "created_at"), name="judgement_queue"),
            models.Index(fields=("owner", "status"), name="judgement_open"),
            models.Index(fields=("finished_at",), name="judgement_age"),
        )

    def __str__(self) -> str:
        return str(self.id)

    @property
    def source(self) -> str:
        """Return the kernel's text; empty where it has ended."""
        return zlib.decompress(self.packed).decode() if self.packed else ""

    def as_run(self) -> Run:
        """Return a run that says the same and is in no database: claims and reports of it are
        checked as any other's."""
        names = (
            *("id", "problem_digest", "hardware_id", "world_size", "size", "dtype", "profile"),
            *("device", "placement", "host", "status", "tries", "needs"),
        )
        kernel = Kernel(problem=self.problem, source_id=self.source_digest, backend=self.backend)
        return Run(kernel=kernel, **{name: getattr(self, name) for name in names})
