"""Bans accounts and lifts bans: nobody signs in to a banned one or uses its tokens."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import Ban, DataVersion, Submission, Visibility
from leaderboard.runs import evaluation
from leaderboard.submissions.moderation import note, show
from leaderboard.submissions.rulings import checked_reason


def ban(user: User, actor: AbstractBaseUser, reason: str, *, hide: bool = False) -> Ban:
    """Ban an account: its waiting runs are cancelled; what it handed in stays as it is, or is made
    private where `hide` says so. Raises RequestError."""
    reason = checked_reason(reason)
    with transaction.atomic():
        found = User.objects.select_for_update().get(pk=user.pk)
        _check(found, actor)
        made = Ban.objects.create(user=found, reason=reason)
        User.objects.filter(pk=found.pk).update(is_active=False)
        cancelled = evaluation.cancel_waiting_of(found.pk)
        if hide:
            made.hidden = _hidden(found, actor)
            made.save()
        told = {"reason": reason, "cancelled": cancelled, "hidden": sorted(map(int, made.hidden))}
        note(actor, "ban", f"account {found.username}", told)
        DataVersion.objects.bump()
    return made


def lift(standing: Ban, actor: AbstractBaseUser) -> None:
    """Let an account in again, and show what its ban hid, but for what was changed since. Cancelled
    runs stay cancelled. Raises RequestError."""
    with transaction.atomic():
        if not Ban.objects.standing().filter(pk=standing.pk).update(lifted_at=timezone.now()):
            message = "The ban has been lifted already."
            raise RequestError(
                "lifted_already", message, "There is nothing to be done.", status=409
            )
        User.objects.filter(pk=standing.user_id).update(is_active=True)
        still = Submission.objects.filter(pk__in=standing.hidden, visibility=Visibility.PRIVATE)
        for submission in still.order_by("pk"):
            show(submission, actor, Visibility(standing.hidden[str(submission.pk)]))
        note(actor, "lift ban", f"account {standing.user.username}", {})


def _check(user: User, actor: AbstractBaseUser) -> None:
    if user.pk == actor.pk:
        raise RequestError("own_account", "Nobody bans themselves.", "Name another account.")
    if user.is_superuser and not getattr(actor, "is_superuser", False):
        message = f"{user.username} is a superuser, whom only another one bans."
        raise RequestError("superuser", message, "Ask one.", status=403)
    if not user.is_active:
        message = f"{user.username} is banned, or was closed by an operator."
        raise RequestError("not_active", message, "There is nothing to be done.", status=409)


def _hidden(user: User, actor: AbstractBaseUser) -> dict[str, str]:
    shown = Submission.objects.filter(owner=user).exclude(visibility=Visibility.PRIVATE)
    before = {str(one.pk): one.visibility for one in shown.order_by("pk")}
    for submission in shown.order_by("pk"):
        show(submission, actor, Visibility.PRIVATE)
    return before
