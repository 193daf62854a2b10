"""Stores what owners are to be told of their submissions, and by which ways."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Count, Q

from leaderboard.models.choices import Moderation, Status, one_of
from leaderboard.models.runs import OPEN, Run
from leaderboard.models.submissions import Submission
from leaderboard.models.teams import Membership, Role, Team

MAX_TEXT = 500
MAX_TRIES = 5


class Event(models.TextChoices):
    """Names what owners are told of."""

    JUDGED = "judged", "All runs of a submission have ended"
    FAILED = "failed", "Some ended without a result, for reasons of ours"
    DISPUTED = "disputed", "Staff dispute a submission"
    INVALIDATED = "invalidated", "Staff invalidated a submission"
    RECORD_LOST = "record-lost", "Another kernel became the fastest for its problem"


# What is mailed to who has chosen nothing.
USUALLY_MAILED = (Event.DISPUTED, Event.INVALIDATED)
OF_MODERATION = {
    Moderation.DISPUTED: Event.DISPUTED,
    Moderation.INVALIDATED: Event.INVALIDATED,
}


class Channel(models.TextChoices):
    """Names the ways by which a notice is sent. A feed is read, so it is none."""

    MAIL = "mail"
    WEBHOOK = "webhook"


def owners_of(submission: Submission) -> list[int]:
    """Return whom to tell: its owner, or those of the team whose token handed it in."""
    team = Team.objects.filter(account=submission.owner_id)
    owners = Membership.objects.filter(team__in=team, role=Role.OWNER)
    return list(owners.values_list("user", flat=True)) or [submission.owner_id]


class NoticeQuerySet(models.QuerySet["Notice"]):
    def tell(self, kind: Event, submission: Submission, text: str, once: str) -> None:
        """Store a notice for the owner of a submission, in the caller's transaction; it is sent
        later. What has the same kind and `once` of that submission is stored once."""
        rows = [
            Notice(
                owner_id=owner_id,
                kind=kind,
                submission=submission,
                text=text[:MAX_TEXT],
                once=f"{kind} {submission.pk} {once} {owner_id}",
            )
            for owner_id in owners_of(submission)
        ]
        self.bulk_create(rows, ignore_conflicts=True)

    def judged(self, submission_id: int) -> None:
        """Tell that all runs of a submission have ended, if they have; practice is followed as it
        goes on."""
        runs = Run.objects.filter(kernel__submission=submission_id)
        if runs.filter(status__in=OPEN).exists():
            return
        of = Submission.objects.filter(pk=submission_id, is_practice=False).first()
        if of is None:
            return
        counts: dict[str, int] = runs.order_by().aggregate(
            every=Count("pk"),
            right=Count("pk", filter=Q(verdict="ok")),
            failed=Count("pk", filter=Q(status=Status.FAILED)),
        )
        every, failed = counts["every"], counts["failed"]
        said = f"{every} of its runs have ended, {counts['right']} of them ok."
        self.tell(Event.JUDGED, of, said, str(every))
        if failed:
            said = (
                f"{failed} of its runs ended without a result, for reasons of ours. Judge it again."
            )
            self.tell(Event.FAILED, of, said, str(failed))

    def moderated(self, submission: Submission, moderation: Moderation, reason: str) -> None:
        if moderation in OF_MODERATION:
            count = self.filter(submission=submission).count()
            self.tell(OF_MODERATION[moderation], submission, reason, str(count))

    def record_lost(self, before: UUID, after: UUID) -> None:
        """Tell the owner of the run that was the fastest for a problem, unless it is ranked no
        more, the new one is theirs, or the two are not distinguishable. Of two submissions it is
        told once."""
        read = Run.objects.select_related("kernel__submission", "kernel__problem")
        found = read.defer("report_packed", "kernel__problem__payload").in_bulk([before, after])
        lost, won = found[before].kernel, found[after].kernel
        is_ranked = Submission.objects.ranked().filter(pk=lost.submission_id).exists()
        is_theirs = lost.submission.owner_id == won.submission.owner_id
        is_faster = (found[after].speedup_low or 0.0) > (found[before].speedup_high or 0.0)
        if is_ranked and is_faster and not is_theirs:
            text = (
                f"Submission {won.submission_id} is faster now at problem"
                f" {won.problem_id} ({won.problem.slug}), on {found[after].hardware_id}."
            )
            self.tell(Event.RECORD_LOST, lost.submission, text, str(won.submission_id))


class Notice(models.Model):
    """Records something that an owner is to be told. `is_spread` says that its deliveries are
    stored; what is sent twice has the same id."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=16, choices=Event.choices)
    submission = models.ForeignKey(Submission, models.PROTECT, related_name="notices")
    text = models.CharField(max_length=MAX_TEXT)
    once = models.CharField(max_length=80, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    is_spread = models.BooleanField(default=False)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("id",), name="notice_new", condition=Q(is_spread=False)),)
        constraints = (one_of("kind", Event.choices, "notice_kind_known"),)

    def __str__(self) -> str:
        return self.once


class Delivery(models.Model):
    """Records one notice on one way: due at `next_at`, which is None when it was `done_at` or given
    up."""

    notice = models.ForeignKey(Notice, models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=8, choices=Channel.choices)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        indexes = (
            models.Index(
                fields=("next_at",), name="delivery_due", condition=Q(next_at__isnull=False)
            ),
        )
        constraints = (
            one_of("channel", Channel.choices, "delivery_channel_known"),
            models.UniqueConstraint(fields=("notice", "channel"), name="delivery_once"),
            models.CheckConstraint(
                condition=Q(next_at=None) | Q(done_at=None), name="delivery_due_or_done"
            ),
        )

    def __str__(self) -> str:
        return f"{self.channel} {self.notice_id}"


class NoticeChoice(models.Model):
    """Holds by which ways an owner wants to be told: the kinds that are mailed; an address to which
    all are posted, with the salt of its secret, and why the site has stopped doing so; the SHA-256
    of the secret in the address of a feed. Who has no row is mailed what usually is."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="notice_choice"
    )
    mailed: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    webhook = models.CharField(max_length=200, blank=True, default="")
    webhook_salt = models.CharField(max_length=64, blank=True, default="")
    webhook_off = models.CharField(max_length=200, blank=True, default="")
    feed_digest = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001

    def __str__(self) -> str:
        return f"of {self.owner_id}"

    @classmethod
    def of(cls, owner_id: Any) -> NoticeChoice:
        """Return an owner's choice; the usual one is not saved."""
        usual = [kind.value for kind in USUALLY_MAILED]
        return cls.objects.filter(pk=owner_id).first() or cls(owner_id=owner_id, mailed=usual)
