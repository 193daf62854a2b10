"""Stores the evaluations of kernels."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models
from django.db.models import Case, F, Q, When

from evaluator.messages.job import Placement
from evaluator.messages.needs import BETWEEN_GPUS, Ability
from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.links import url
from leaderboard.kit.permissions import READ_ALL, may
from leaderboard.kit.unindexed import unindexed
from leaderboard.models.access import ApiToken
from leaderboard.models.catalogue import Hardware
from leaderboard.models.choices import (
    COUNTED_VERDICTS,
    DEVICES,
    DTYPES,
    ISOLATIONS,
    LIMITERS,
    PHASES,
    PLACEMENTS,
    PROFILES,
    TIMED_VERDICTS,
    VERDICTS,
    Status,
    Trust,
    Visibility,
    is_timed,
    one_of,
)
from leaderboard.models.rulings import Ruling
from leaderboard.models.submissions import AppendOnlyError, Kernel, Submission, theirs
from leaderboard.models.teams import Viewer

MAX_TRIES = 3
OPEN = (Status.QUEUED, Status.RUNNING)
FINAL = (Status.DONE, Status.FAILED, Status.CANCELLED)
TIMES = ("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high")
SETTING = ("hardware_id", "world_size", "size", "dtype", "profile", "judge_version", "placement")
NO_LEASE = Q(lease_token=None, lease_until=None)
# A CHECK holds where it is unknown, so every branch says which columns may be NULL.
NO_TIMES = Q(**{f"{name}__isnull": True for name in TIMES})
ALL_TIMES = Q(**{f"{name}__isnull": False for name in TIMES})
NO_BOUND = Q(bound_us__isnull=True, limiter__isnull=True)
A_SHARE = Q(idle__gte=0, idle__lte=1)
A_BOUND = Q(bound_us__isnull=False, bound_us__gte=0, limiter__isnull=False)
# Not a plain condition, for which SQLite would read all that is public and sort it; nor one on a
# function, of which PostgreSQL thinks that it hardly ever holds, and does the same.
IS_PUBLIC = Case(When(kernel__submission__visibility=Visibility.PUBLIC, then=True), default=False)
Rows = TypeVar("Rows", bound=models.QuerySet[Any])
JUDGED = Q(finished_at__isnull=False, verdict__isnull=False)


def ruled_on(run: str = "pk", source: str = "kernel__source") -> Q:
    """Return the condition of runs of which staff said that they do not count, by the paths to
    those: few, so that a database looks them up once."""
    own = Ruling.objects.order_by()
    runs, sources = own.filter(source=None).values("run"), own.filter(run=None).values("source")
    return Q((f"{run}__in", runs)) | Q((f"{source}__in", sources))


def fitting(rows: Rows, abilities: Iterable[str] | None) -> Rows:
    """Return those of rows with `placement` and `needs` that RunQuerySet.fit_for describes."""
    for name in sorted(BETWEEN_GPUS):
        rows = rows.exclude(placement=Placement.SHARED, needs__contains=f" {name} ")
    for name in sorted(set() if abilities is None else set(Ability) - set(abilities)):
        rows = rows.exclude(needs__contains=f" {name} ")
    return rows


class RunQuerySet(models.QuerySet["Run"]):
    def queued(self) -> RunQuerySet:
        return self.filter(status=Status.QUEUED)

    def running(self) -> RunQuerySet:
        return self.filter(status=Status.RUNNING)

    def begun(self) -> RunQuerySet:
        """Return runs with which a judge has begun, whatever became of them."""
        return self.exclude(status__in=(Status.QUEUED, Status.CANCELLED), tries=0)

    def counted(self) -> RunQuerySet:
        """Return runs, but for practice and older tasks, whose verdict says something of the kernel
        of today's problem, on as many ranks as it is ranked from, unless staff said otherwise."""
        return self.filter(
            status=Status.DONE,
            verdict__in=COUNTED_VERDICTS,
            problem_digest=F("kernel__problem__digest"),
            world_size__gte=F("kernel__problem__ranked_from"),
            kernel__submission__is_practice=False,
            kernel__older_task="",
        ).exclude(ruled_on() | Q(isolation="none"))

    def reachable_by(self, viewer: Viewer) -> RunQuerySet:
        return self.filter(kernel__submission__in=Submission.objects.reachable_by(viewer))

    def public(self) -> RunQuerySet:
        return self.filter(IS_PUBLIC)

    def listed_for(self, viewer: Viewer) -> RunQuerySet:
        """Return what lists show to a viewer."""
        if may(viewer, READ_ALL):
            return self
        return self.filter(Q(IS_PUBLIC) | theirs(viewer, "kernel__submission__"))

    def few(self, **where: object) -> RunQuerySet:
        """Return those whose columns have these values, of runs that are few for another reason: by
        no index of these columns, which would lead through the runs of everybody else."""
        told = self.alias(**{f"few_{name}": unindexed(name) for name in where})
        return told.filter(**{f"few_{name}": value for name, value in where.items()})

    def with_names(self) -> RunQuerySet:
        """Read with each run what a line about it shows, without the report and what is as long."""
        named = self.select_related("kernel__problem", "kernel__submission__model")
        return named.defer("report_packed", "token", "needs", "kernel__problem__payload")

    def not_declined_by(self, host: str) -> RunQuerySet:
        return self.exclude(declines__host=host)

    def fit_for(self, abilities: Iterable[str] | None) -> RunQuerySet:
        """Return runs that need no more than a host has; all for one that did not tell, but those
        whose ranks share a GPU and need what lies between GPUs."""
        return fitting(self, abilities)

    def delete(self) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("runs are kept: invalidate their submission instead")


class Run(models.Model):
    """Records one evaluation of one kernel.

    While it runs, `lease_token` fences off every worker but the last that leased it, and
    `lease_until` says when it is given up for lost. A finished run is never changed. `token` is the
    worker's that leased it last; None of what was imported or judged before 0.2.

    `bound_us` is the least time that the hardware allows a call, `limiter` what sets it, and
    `utilisation` that bound over the kernel's time; `idle` is the idle share of the profiled time.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kernel = models.ForeignKey(Kernel, models.PROTECT, related_name="runs", db_index=False)
    problem_digest = models.CharField(max_length=64)
    hardware = models.ForeignKey(Hardware, models.PROTECT, related_name="runs")
    world_size = models.PositiveSmallIntegerField()
    size = models.CharField(max_length=32)
    dtype = models.CharField(max_length=16, choices=DTYPES)
    profile = models.CharField(max_length=16, choices=PROFILES)
    device = models.CharField(max_length=8, choices=DEVICES)
    placement = models.CharField(max_length=8, choices=PLACEMENTS, default=Placement.FULL.value)

    status = models.CharField(max_length=16, choices=Status.choices, default=Status.QUEUED)
    phase = models.CharField(max_length=16, choices=PHASES, null=True)  # noqa: DJ001
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    rung_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    host = models.CharField(max_length=200, blank=True)
    lease_token = models.CharField(max_length=64, null=True)  # noqa: DJ001  None: not leased
    lease_until = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    last_error = models.TextField(blank=True)

    verdict = models.CharField(max_length=32, choices=VERDICTS, null=True)  # noqa: DJ001
    message = models.TextField(blank=True)
    cause = models.TextField(null=True)  # noqa: DJ001  None: not known
    evidence = models.TextField(null=True)  # noqa: DJ001  None: there is none
    flags: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    ranks: models.JSONField[list[int], list[int]] = models.JSONField(default=list)
    kernel_us = models.FloatField(null=True)
    baseline_us = models.FloatField(null=True)
    speedup = models.FloatField(null=True)
    speedup_low = models.FloatField(null=True)
    speedup_high = models.FloatField(null=True)
    bound_us = models.FloatField(null=True)
    limiter = models.CharField(max_length=16, choices=LIMITERS, null=True)  # noqa: DJ001
    utilisation = models.FloatField(null=True)
    idle = models.FloatField(null=True)
    mechanisms: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    isolation = models.CharField(max_length=32, choices=ISOLATIONS, null=True)  # noqa: DJ001
    judge_version = models.CharField(max_length=32, null=True)  # noqa: DJ001
    environment: models.JSONField[JsonDict | None, JsonDict | None] = models.JSONField(null=True)
    report_packed = models.BinaryField(null=True)
    # Names with a space before and after each, to be found by either database.
    needs = models.CharField(max_length=200, blank=True, default="")
    token = models.ForeignKey(ApiToken, models.PROTECT, null=True, related_name="+", db_index=False)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        # Of two that seem as good SQLite takes the later: a kernel's runs before its hardware's.
        indexes = (
            models.Index(fields=("-created_at", "-id"), name="run_newest"),
            models.Index(
                fields=("hardware", "created_at"), name="run_queue", condition=Q(status="queued")
            ),
            models.Index(fields=("lease_until",), name="run_lease", condition=Q(status="running")),
            models.Index(fields=("hardware", "status", "finished_at"), name="run_ended"),
            models.Index(fields=("verdict", "-created_at"), name="run_verdict"),
            models.Index(fields=("kernel", "-created_at", "-id"), name="run_of_kernel"),
            models.Index(fields=("placement", "-created_at", "-id"), name="run_placement"),
        )
        constraints = (
            one_of("status", Status.choices, "run_status_known"),
            one_of("verdict", VERDICTS, "run_verdict_known"),
            one_of("phase", PHASES, "run_phase_known"),
            one_of("profile", PROFILES, "run_profile_known"),
            one_of("dtype", DTYPES, "run_dtype_known"),
            one_of("device", DEVICES, "run_device_known"),
            one_of("placement", PLACEMENTS, "run_placement_known"),
            one_of("isolation", ISOLATIONS, "run_isolation_known"),
            one_of("limiter", LIMITERS, "run_limiter_known"),
            models.CheckConstraint(condition=NO_BOUND | A_BOUND, name="run_bound_has_limiter"),
            models.CheckConstraint(
                condition=Q(utilisation=None)
                | Q(utilisation__gte=0, bound_us__isnull=False, kernel_us__isnull=False),
                name="run_utilisation_is_of_a_timing",
            ),
            models.CheckConstraint(condition=Q(idle=None) | A_SHARE, name="run_idle_is_a_share"),
            models.CheckConstraint(
                condition=Q(world_size__gte=2, world_size__lte=64), name="run_world_size_in_range"
            ),
            models.CheckConstraint(condition=Q(tries__lte=MAX_TRIES), name="run_tries_bounded"),
            models.CheckConstraint(
                condition=Q(progress_done__lte=F("progress_total")), name="run_progress_fits"
            ),
            models.CheckConstraint(
                condition=Q(status="running", tries__gte=1, started_at__isnull=False)
                & Q(lease_token__isnull=False, lease_until__isnull=False)
                & ~Q(host="")
                | ~Q(status="running") & NO_LEASE,
                name="run_leased_while_running",
            ),
            models.CheckConstraint(
                condition=Q(status__in=OPEN, verdict=None, finished_at=None, report_packed=None)
                | JUDGED
                & Q(status="done", report_packed__isnull=False, isolation__isnull=False)
                & Q(judge_version__isnull=False, environment__isnull=False)
                & ~Q(verdict__in=("infra_error", "cancelled"))
                | JUDGED & Q(status="failed", verdict="infra_error")
                | JUDGED & Q(status="cancelled", verdict="cancelled"),
                name="run_verdict_fits_status",
            ),
            models.CheckConstraint(
                condition=Q(verdict=None, message="") | (Q(verdict__isnull=False) & ~Q(message="")),
                name="run_verdict_has_message",
            ),
            models.CheckConstraint(
                condition=NO_TIMES & (Q(verdict=None) | ~Q(verdict="ok") | ~Q(placement="full"))
                | ALL_TIMES
                & Q(verdict__isnull=False, verdict__in=TIMED_VERDICTS, placement="full")
                & Q(kernel_us__gt=0, baseline_us__gt=0)
                & Q(speedup_low__gt=0, speedup_low__lte=F("speedup"))
                & Q(speedup__lte=F("speedup_high")),
                name="run_ok_iff_timed",
            ),
        )

    def __str__(self) -> str:
        return str(self.id)

    def get_absolute_url(self) -> str:
        return url("run", self.id)

    def ruled(self) -> Ruling | None:
        """Return the ruling that holds: on the run itself, or on its source. Reads both."""
        found: Ruling | None = getattr(self, "ruling", None)
        return found or getattr(self.kernel.source, "ruling", None)

    @property
    def needed(self) -> frozenset[str]:
        """Return the abilities that its host must have."""
        return frozenset(self.needs.split())

    @property
    def is_timed(self) -> bool:
        """Return whether it is timed if it is right, and not only checked."""
        return is_timed(self.placement)

    @property
    def trust(self) -> Trust:
        """Return how far its result, where it counts, backs its submission."""
        return Trust.VERIFIED if self.is_timed else Trust.CHECKED

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def has_counted_verdict(self) -> bool:
        """Return True if RunQuerySet.counted finds it where it is of today's problem, on enough
        ranks, and not ruled on. Reads its submission."""
        is_judged = self.status == Status.DONE and self.verdict in COUNTED_VERDICTS
        never_counts = self.kernel.submission.is_practice or self.kernel.older_task
        return is_judged and not never_counts and self.isolation != "none"

    @property
    def report(self) -> JsonDict | None:
        """Return the whole report as its JSON value, or None where there is none."""
        packed = self.report_packed
        return None if packed is None else dict(json.loads(zlib.decompress(packed)))
