"""Lets owners withdraw what they had handed in: its results stay, and rank nowhere."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models.functions import Now

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Moderation, Submission
from leaderboard.runs import evaluation
from leaderboard.submissions.editing import has_been_judged
from leaderboard.submissions.moderation import change
from leaderboard.submissions.rulings import checked_reason

MAX_REASON = 500
NO_REASON = "No reason was given."


def withdraw(submission: Submission, actor: AbstractBaseUser, reason: str = "") -> None:
    """Withdraw an accepted submission, and end its waiting runs. The reason is public where it is.
    Once a judge has begun, an embargo goes on, and what was withdrawn becomes public at its date:
    who has seen results could choose otherwise. Raises RequestError.

    Its owner cannot take that back: staff can, and the date stays.
    """
    said_why = checked_reason(reason, MAX_REASON) if reason.strip() else NO_REASON
    with transaction.atomic():
        row = Submission.objects.select_for_update().get(pk=submission.pk)
        if row.moderation != Moderation.ACCEPTED:
            raise RequestError(
                "not_accepted",
                f"The submission is {row.moderation} already.",
                "There is nothing to be done: it ranks nowhere.",
                status=409,
            )
        evaluation.cancel_waiting(row.pk)
        until = row.public_from if has_been_judged(row) else None
        Submission.objects.filter(pk=row.pk).update(withdrawn_at=Now(), public_from=until)
        said = {
            "moderation": Moderation.WITHDRAWN,
            "moderation_reason": said_why,
        }
        change(row, actor, "withdraw", **said)
