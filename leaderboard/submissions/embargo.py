"""Keeps submissions private until a date that was told before they were judged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Ban, Submission, Visibility
from leaderboard.submissions.moderation import change

LONGEST = timedelta(days=366)


def embargo_end(at: datetime | None, visibility: str) -> datetime | None:
    """Return `at` as it is stored, in whole minutes. Raises RequestError where a submission of this
    visibility cannot be hidden until then."""
    if at is None:
        return None
    if visibility == Visibility.PUBLIC:
        raise _refused("What is public has no embargo.", "Make it private, or leave the date out.")
    now = timezone.now()
    if not now < at <= now + LONGEST:
        message = f"An embargo ends within {LONGEST.days} days."
        raise _refused(message, "Give a date to come; its owner may end it before.")
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def _refused(message: str, fix: str) -> RequestError:
    fields = {"public_from": message[:1].lower() + message[1:].rstrip(".")}
    return RequestError("bad_public_from", message, fix, fields=fields)


def publish(submission: Submission, actor: AbstractBaseUser | None) -> None:
    """Make a hidden submission public, in the caller's transaction; the actor is None where its
    date has come."""
    Submission.objects.filter(pk=submission.pk).update(published_at=Now())
    ends = {"public_from": None} if submission.public_from else {}
    change(submission, actor, "publish", visibility=Visibility.PUBLIC, **ends)


def publish_due() -> int:
    """Publish all whose date has come, however long ago; return how many. What a banned account
    handed in stays hidden until the ban is lifted."""
    banned = Ban.objects.standing().values("user")
    due = Submission.objects.filter(public_from__lte=Now()).exclude(owner__in=banned)
    published = 0
    for number in due.order_by("public_from", "pk").values_list("pk", flat=True):
        with transaction.atomic():
            # Whoever does the same, or edits it, at the same moment was first or waits.
            if row := due.select_for_update().filter(pk=number).first():
                publish(row, None)
                published += 1
    return published
