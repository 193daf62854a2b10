"""Changes what a submission says of itself afterwards: never its kernels, never results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.utils import timezone

from leaderboard.kit.permissions import EDIT_ALL, END_RUNS, may
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Moderation, Role, Run, Status, Submission, Visibility
from leaderboard.models.teams import teams_of
from leaderboard.submissions.embargo import embargo_end, publish
from leaderboard.submissions.metadata import check_metadata, check_names
from leaderboard.submissions.moderation import change

EDITABLE = (
    *("visibility", "public_from", "step_budget", "cost_usd", "link", "licence", "notes"),
    "withholds_source",
)
HIDDEN = (Visibility.PRIVATE, Visibility.UNLISTED)
OF_EMBARGO = ("visibility", "public_from")


def may_edit(user: AbstractBaseUser | AnonymousUser, submission: Submission) -> bool:
    """Return True for who owns the submission, and for staff with that permission."""
    return user.is_authenticated and (is_own(user, submission) or may(user, EDIT_ALL))


def is_own(user: AbstractBaseUser | AnonymousUser, submission: Submission) -> bool:
    """Return True for the submission's owner, and for the owners of its team."""
    if user.is_authenticated and user.pk == submission.owner_id:
        return True
    return submission.team_id is not None and submission.team_id in teams_of(user, Role.OWNER)


def may_cancel(user: AbstractBaseUser | AnonymousUser, run: Run) -> bool:
    """Return True for staff with that permission, and for who owns the submission while its run
    waits."""
    if run.is_final or not user.is_authenticated:
        return False
    return may(user, END_RUNS) or (
        run.status == Status.QUEUED and is_own(user, run.kernel.submission)
    )


def visibilities(submission: Submission) -> tuple[Visibility, ...]:
    """Return those that the submission may have.

    Who could hide what has been judged, or publish it, would be ranked by what went well; practice
    never is. An embargo will end whatever came out.
    """
    now = Visibility(submission.visibility)
    if submission.moderation != Moderation.ACCEPTED:
        return (now,)  # the reason stays where it can be read
    if submission.public_from or _is_free(submission):
        return tuple(Visibility)
    return HIDDEN if now in HIDDEN else (now,)


def _is_free(submission: Submission) -> bool:
    """Return True where nobody knows yet what will come out, or it counts nowhere."""
    return submission.is_practice or not has_been_judged(submission)


def may_set_embargo(submission: Submission) -> bool:
    """Return True where a date from which it is public can be given, or made earlier."""
    is_hidden = bool(submission.public_from) or _is_free(submission)
    return submission.moderation == Moderation.ACCEPTED and is_hidden


def has_been_judged(submission: Submission) -> bool:
    """Return True if a judge has begun with any of its kernels."""
    return Run.objects.begun().filter(kernel__submission=submission.pk).exists()


def edit(submission: Submission, actor: AbstractBaseUser, values: Mapping[str, Any]) -> None:
    """Store new `values`, by names of EDITABLE, with an entry in the audit log; those that are as
    they were change nothing. Raises RequestError."""
    with transaction.atomic():
        row = Submission.objects.select_for_update().get(pk=submission.pk)
        changed = {name: value for name, value in values.items() if value != getattr(row, name)}
        _check(row, actor, changed)
        if not changed:
            return
        Submission.objects.filter(pk=row.pk).update(edited_at=timezone.now())
        if changed.get("visibility") == Visibility.PUBLIC:
            publish(row, actor)
            changed = {name: changed[name] for name in changed if name not in OF_EMBARGO}
        if changed:
            change(row, actor, "edit", **changed)


def _check(row: Submission, actor: AbstractBaseUser, changed: dict[str, Any]) -> None:
    if "withholds_source" in changed:
        _check_source(row, actor)
    of_source = {"licence": row.licence, "withholds_source": row.withholds_source}
    check_metadata(row.harness, {**of_source, **changed})
    check_names("", "", changed.get("notes", ""))
    if "visibility" in changed:
        _check_visibility(row, changed)
        if changed["visibility"] == Visibility.PUBLIC and changed.get("public_from", "") is None:
            del changed["public_from"]  # as publishing does
    if "public_from" in changed:
        visibility = changed.get("visibility", row.visibility)
        changed["public_from"] = embargo_end(changed["public_from"], visibility)
        _check_embargo(row, changed["public_from"])


def _check_source(row: Submission, actor: AbstractBaseUser) -> None:
    """Refuse to withhold what was not, and staff to publish what is: that is never taken back."""
    if not is_own(actor, row):
        message, fix = "Only its owner publishes a withheld source.", "Ask its owner to."
        raise RequestError("owner_publishes", message, fix, status=403)
    if not row.withholds_source:
        raise RequestError(
            "source_not_withheld",
            "The submission did not withhold its source: what may have been read stays so.",
            "Hand its kernels in again with withholds_source.",
            status=409,
            fields={"withholds_source": "may only end"},
        )


def _check_embargo(row: Submission, wanted: datetime | None) -> None:
    is_earlier = bool(wanted and row.public_from and wanted < row.public_from)
    if row.moderation != Moderation.ACCEPTED or not (is_earlier or _is_free(row)):
        raise RequestError(
            "embargo_fixed",
            "The submission has been judged or disputed: its embargo may only end earlier.",
            "Give an earlier date than it has, or publish it now.",
            status=409,
            fields={"public_from": "may only become earlier"},
        )


def _check_visibility(row: Submission, changed: Mapping[str, Any]) -> None:
    allowed = visibilities(row)
    if changed["visibility"] not in allowed:
        raise RequestError(
            "visibility_fixed",
            f"The submission stays {' or '.join(allowed)}: it has been judged or disputed.",
            "Hand the kernels in again to have them judged anew, or ask this site's staff.",
            status=409,
            fields={"visibility": " or ".join(allowed)},
        )
