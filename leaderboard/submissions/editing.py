"""Changes what a submission says of itself afterwards: never its kernels, never results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Moderation, Run, Status, Submission, Visibility
from leaderboard.staff.moderation import change
from leaderboard.submissions.metadata import check_metadata

EDITABLE = ("visibility", "step_budget", "cost_usd", "link", "notes")
HIDDEN = (Visibility.PRIVATE, Visibility.UNLISTED)


def may_edit(user: AbstractBaseUser | AnonymousUser, submission: Submission) -> bool:
    """Return True for the submission's owner, and for staff."""
    is_staff = bool(getattr(user, "is_staff", False))
    return user.is_authenticated and (is_staff or user.pk == submission.owner_id)


def visibilities(submission: Submission) -> tuple[Visibility, ...]:
    """Return those that the submission may have.

    Who could hide what has been judged, or publish it, would be ranked by what went well; practice
    never is.
    """
    now = Visibility(submission.visibility)
    if submission.moderation != Moderation.ACCEPTED:
        return (now,)  # the reason stays where it can be read
    if submission.is_practice or not has_been_judged(submission):
        return tuple(Visibility)
    return HIDDEN if now in HIDDEN else (now,)


def has_been_judged(submission: Submission) -> bool:
    """Return True if a judge has begun with any of its kernels."""
    waiting = {"status__in": (Status.QUEUED, Status.CANCELLED), "tries": 0}
    return Run.objects.filter(kernel__submission=submission.pk).exclude(**waiting).exists()


def edit(submission: Submission, actor: AbstractBaseUser, values: Mapping[str, Any]) -> None:
    """Store new `values`, by names of EDITABLE, with an entry in the audit log; those that are as
    they were change nothing. Raises RequestError."""
    with transaction.atomic():
        row = Submission.objects.select_for_update().get(pk=submission.pk)
        changed = {name: value for name, value in values.items() if value != getattr(row, name)}
        _check(row, changed)
        if changed:
            Submission.objects.filter(pk=row.pk).update(edited_at=timezone.now())
            change(row, actor, "edit", **changed)


def _check(row: Submission, changed: Mapping[str, Any]) -> None:
    check_metadata(row.harness, changed)
    if "visibility" not in changed:
        return
    allowed = visibilities(row)
    if changed["visibility"] not in allowed:
        raise RequestError(
            "visibility_fixed",
            f"The submission stays {' or '.join(allowed)}: it has been judged or disputed.",
            "Hand the kernels in again to have them judged anew, or ask this site's staff.",
            status=409,
            fields={"visibility": " or ".join(allowed)},
        )
