"""Stores who may do what, which hosts are alive, and what staff did."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.functional import cached_property

from leaderboard.kit.json_types import JsonDict
from leaderboard.kit.without_waiting import without_waiting
from leaderboard.models.choices import ISOLATIONS, HostState, one_of
from leaderboard.models.teams import person_of

TOKEN_MARK = "pkb_"
PREFIX_LENGTH = len(TOKEN_MARK) + 8
# How exact the last use of a token is: a request that comes sooner after another writes nothing.
USE_NOTED_EVERY = timedelta(minutes=1)
MAX_TITLE = 80


class Scope(models.TextChoices):
    """Limits a token: `submit` may read as well; `worker` may only lease and report runs."""

    READ = "read"
    SUBMIT = "submit"
    WORKER = "worker"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def issue(
        self,
        *,
        scope: Scope,
        name: str,
        owner: AbstractBaseUser | None = None,
        lifetime: timedelta | None = None,
        good_for: Mapping[str, object] = MappingProxyType({}),
    ) -> tuple[ApiToken, str]:
        """Store a new token; return it with its text, which is shown once and never stored.

        That of a worker is `good_for` these `queues`, `hosts` and `groups`.
        """
        text = TOKEN_MARK + secrets.token_urlsafe(32)
        token = self.create(
            prefix=text[:PREFIX_LENGTH],
            digest=hashlib.sha256(text.encode()).hexdigest(),
            scope=scope,
            name=name,
            owner_id=owner.pk if owner else None,
            expires_at=timezone.now() + lifetime if lifetime else None,
            **good_for,
        )
        return token, text

    def valid(self) -> ApiTokenQuerySet:
        unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, revoked_at=None)

    def matching(self, text: str) -> ApiToken | None:
        """Return the valid token with this text, with its owner, and the team whose that is."""
        digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
        return self.valid().select_related("owner__team_of").filter(digest=digest).first()

    def note_use(self, token: ApiToken) -> None:
        """Store that a token is used now, unless that was stored within the last minute, or the
        request would have to wait for it."""
        now = timezone.now()
        if token.last_used_at and token.last_used_at > now - USE_NOTED_EVERY:
            return
        with without_waiting():
            self.filter(pk=token.pk).update(last_used_at=now)

    def revoke(self) -> int:
        """Revoke those that are not revoked yet; return how many."""
        return self.filter(revoked_at=None).update(revoked_at=timezone.now())


class ApiToken(models.Model):
    """Holds the first characters and the SHA-256 of 256 random bits.

    The token of a worker is good for its `queues` and from its `hosts` only; an empty list means
    any, which is what tokens of older releases have. A host has at most as many runs at once as it
    has `groups` of GPUs.
    """

    prefix = models.CharField(max_length=PREFIX_LENGTH)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=8, choices=Scope.choices)
    name = models.CharField(max_length=80)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="tokens"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    queues: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    hosts: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    groups = models.PositiveSmallIntegerField(default=1)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            one_of("scope", Scope.choices, "token_scope_known"),
            models.CheckConstraint(
                condition=Q(scope=Scope.WORKER, owner=None)
                | (~Q(scope=Scope.WORKER) & Q(owner__isnull=False)),
                name="token_of_a_worker_has_no_owner",
            ),
        )

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.scope})"

    @property
    def state(self) -> str:
        """Return `usable`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "usable"

    @cached_property
    def person(self) -> int | None:
        """Return the person behind the token; None for a worker's."""
        return person_of(self.owner_id) if self.owner_id else None

    def allows(self, *, queue: str, host: str) -> bool:
        """Return whether a worker of this host may serve this queue with it."""
        return (not self.queues or queue in self.queues) and (not self.hosts or host in self.hosts)


def heard_lately() -> Q:
    """Return the condition of a host that is alive, by the clock that all web hosts share."""
    return Q(last_seen_at__gte=Now() - timedelta(seconds=settings.PKB_HOST_SILENCE_S))


class WorkerHostQuerySet(models.QuerySet["WorkerHost"]):
    def alive(self) -> WorkerHostQuerySet:
        return self.filter(heard_lately())

    def serving(self) -> WorkerHostQuerySet:
        """Return those that are alive and may be given runs."""
        return self.alive().filter(state=HostState.SERVING)

    def abilities(self) -> set[str] | None:
        """Return what some of these hosts have; None where one did not tell, or there is none."""
        told = list(self.values_list("abilities", flat=True))
        if not told or None in told:
            return None
        return set().union(*(own for own in told if own))


class WorkerHost(models.Model):
    """Records a host that says hello; one row per host and queue. `token` is what it said it with,
    and what it has to claim runs with; `abilities` are None of a judge before 0.2. Staff set
    `state`, and the `title` that pages show instead of the name by which a host calls itself."""

    host = models.CharField(max_length=200)
    queue = models.CharField(max_length=32)
    hardware = models.CharField(max_length=200)
    isolation = models.CharField(max_length=32, choices=ISOLATIONS)
    judge_version = models.CharField(max_length=32)
    versions: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    abilities: models.JSONField[list[str] | None, list[str] | None] = models.JSONField(null=True)
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()
    token = models.ForeignKey(ApiToken, models.PROTECT, null=True, related_name="worker_hosts")
    state = models.CharField(
        max_length=16, choices=HostState.choices, default=HostState.SERVING.value
    )
    title = models.CharField(max_length=MAX_TITLE, blank=True, default="")

    objects = WorkerHostQuerySet.as_manager()

    class Meta:
        ordering = ("queue", "host")
        constraints = (
            one_of("isolation", ISOLATIONS, "worker_host_isolation_known"),
            one_of("state", HostState.choices, "worker_host_state_known"),
            models.UniqueConstraint(fields=("host", "queue"), name="worker_host_once"),
        )

    def __str__(self) -> str:
        return f"{self.host} ({self.queue})"


class AuditEntry(models.Model):
    """Records what staff did, and owners to what they had handed in. Never changed."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    detail: models.JSONField[JsonDict, JsonDict] = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("subject", "-id"), name="audit_subject"),)
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
