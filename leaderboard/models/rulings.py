"""Stores what readers complain of, what staff ruled on single results, and who is banned."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from leaderboard.models.choices import Moderation, one_of

MAX_REASON = 1000
RULINGS = [(one.value, one.value) for one in (Moderation.DISPUTED, Moderation.INVALIDATED)]


class ComplaintOutcome(models.TextChoices):
    """Says what became of a complaint."""

    OPEN = "open"
    UPHELD = "upheld"
    DISMISSED = "dismissed"


SUBJECTS = ("submission", "source", "run")
ONE_SUBJECT = (
    Q(submission__isnull=False, source=None, run=None)
    | Q(submission=None, source__isnull=False, run=None)
    | Q(submission=None, source=None, run__isnull=False)
)


class Complaint(models.Model):
    """Holds a reader's word that something is wrong with a submission, a source or a run, and what
    staff made of it. An account has one open complaint of a subject."""

    submission = models.ForeignKey(
        "leaderboard.Submission", models.PROTECT, null=True, related_name="complaints"
    )
    source = models.ForeignKey(
        "leaderboard.Source", models.PROTECT, null=True, related_name="complaints"
    )
    run = models.ForeignKey("leaderboard.Run", models.PROTECT, null=True, related_name="complaints")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="complaints")
    text = models.TextField(max_length=MAX_REASON)
    at = models.DateTimeField(auto_now_add=True)
    state = models.CharField(
        max_length=16, choices=ComplaintOutcome.choices, default=ComplaintOutcome.OPEN.value
    )
    note = models.TextField(blank=True, default="", max_length=MAX_REASON)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("state", "-id"), name="complaint_queue"),)
        constraints = (
            one_of("state", ComplaintOutcome.choices, "complaint_state_known"),
            models.CheckConstraint(condition=ONE_SUBJECT, name="complaint_of_one_subject"),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None) | ~Q(state="open") & ~Q(note=""),
                name="complaint_ended_with_note",
            ),
            *(
                models.UniqueConstraint(
                    fields=("by", name), condition=Q(state="open"), name=f"complaint_once_a_{name}"
                )
                for name in SUBJECTS
            ),
        )

    def __str__(self) -> str:
        return f"complaint {self.pk}"


class Ruling(models.Model):
    """Takes one run, or all runs of one source, out of every score, for a public reason. The rows
    of runs themselves are never changed."""

    run = models.OneToOneField("leaderboard.Run", models.PROTECT, null=True, related_name="ruling")
    source = models.OneToOneField(
        "leaderboard.Source", models.PROTECT, null=True, related_name="ruling"
    )
    moderation = models.CharField(max_length=16, choices=RULINGS)
    reason = models.TextField(max_length=MAX_REASON)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            one_of("moderation", RULINGS, "ruling_moderation_known"),
            models.CheckConstraint(
                condition=Q(run=None, source__isnull=False) | Q(run__isnull=False, source=None),
                name="ruling_on_one_subject",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="ruling_has_reason"),
        )

    def __str__(self) -> str:
        return f"{self.moderation}: {self.reason}"


class BanQuerySet(models.QuerySet["Ban"]):
    def standing(self) -> BanQuerySet:
        return self.filter(lifted_at=None)


class Ban(models.Model):
    """Keeps an account from signing in and from using its tokens until it is lifted. `hidden` are
    the submissions that it made private, with how visible each was."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="bans")
    reason = models.TextField(max_length=MAX_REASON)
    hidden: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True)

    objects = BanQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("user",), condition=Q(lifted_at=None), name="ban_once_an_account"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="ban_has_reason"),
        )

    def __str__(self) -> str:
        return f"ban of {self.user_id}"


def told(ruling: Ruling | None) -> dict[str, str] | None:
    """Return what pages and their twins say of a ruling; None where there is none."""
    return {"moderation": ruling.moderation, "reason": ruling.reason} if ruling else None
