"""Takes readers' complaints of a submission, a source or a run, and what staff made of them."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Complaint, Run, Source, Submission
from leaderboard.models.rulings import ComplaintOutcome
from leaderboard.submissions.moderation import note
from leaderboard.submissions.rulings import checked_reason

MOST_A_DAY = 20
Subject = Submission | Source | Run


def about(subject: Subject) -> QuerySet[Complaint]:
    return Complaint.objects.filter(**{kind_of(subject): subject})


def kind_of(subject: Subject) -> str:
    return str(subject._meta.model_name)


def complain(by: AbstractBaseUser, subject: Subject, text: str) -> Complaint:
    """Store a complaint for staff. Raises RequestError for one without a text, for a second open
    one of the same subject, and for more than MOST_A_DAY of an account."""
    text = checked_reason(text)
    today = Complaint.objects.filter(by=by.pk, at__gt=timezone.now() - timedelta(days=1))
    if today.count() >= MOST_A_DAY:
        message = f"An account may complain {MOST_A_DAY} times a day."
        raise RequestError("too_many_complaints", message, "Come back tomorrow.", status=429)
    try:
        with transaction.atomic():
            made = {"by_id": by.pk, "text": text, kind_of(subject): subject}
            return Complaint.objects.create(**made)
    except IntegrityError:
        message = "You have complained of this already, and staff have yet to look."
        fix = "Wait for them; then you may complain again."
        raise RequestError("complained_already", message, fix, status=409) from None


def end(
    complaint: Complaint, actor: AbstractBaseUser, outcome: ComplaintOutcome, said: str
) -> None:
    """Uphold or dismiss an open complaint, with a note for who complained. Raises RequestError."""
    if outcome == ComplaintOutcome.OPEN:
        raise RequestError("bad_outcome", "A complaint is upheld or dismissed.", "Say which.")
    ended = {"state": outcome.value, "note": checked_reason(said), "ended_at": timezone.now()}
    with transaction.atomic():
        open_one = Complaint.objects.filter(pk=complaint.pk, state=ComplaintOutcome.OPEN)
        if not open_one.update(**ended, ended_by=actor.pk):
            message = "Somebody of the staff has ended this complaint."
            raise RequestError("ended_already", message, "Look at it again.", status=409)
        note(actor, outcome.value, f"complaint {complaint.pk}", {"note": ended["note"]})
