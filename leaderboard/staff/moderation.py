"""What staff may change, each change with an entry in the audit log. Results are never changed."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Model

from leaderboard.kit.request_error import Refusal
from leaderboard.models import (
    ApiToken,
    AuditEntry,
    DataVersion,
    Hardware,
    LanguageModel,
    Moderation,
    Submission,
    Visibility,
)
from leaderboard.read_model import problem_aggregates


def moderate(
    submission: Submission, actor: AbstractBaseUser, moderation: Moderation, reason: str
) -> None:
    """Accept, dispute or invalidate a submission. The reason is public. Raises Refusal."""
    if (moderation == Moderation.ACCEPTED) != (not reason.strip()):
        raise Refusal(
            "bad_reason",
            "A disputed or invalidated submission needs a public reason; an accepted one has none.",
            "Say why, or leave the reason empty to accept.",
        )
    change(submission, actor, "moderate", moderation=moderation, moderation_reason=reason.strip())


def show(submission: Submission, actor: AbstractBaseUser, visibility: Visibility) -> None:
    change(submission, actor, "show", visibility=visibility)


def edit(row: LanguageModel | Hardware, actor: AbstractBaseUser, **values: Any) -> None:
    change(row, actor, "edit", **values)


def revoke(token: ApiToken, actor: AbstractBaseUser) -> None:
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk).revoke():
            _note(actor, "revoke", f"token {token.prefix}", {})


def change(row: Model, actor: AbstractBaseUser, action: str, **values: Any) -> None:
    """With what pages and boards read of it, and what it was in the audit log."""
    rows = type(row)._default_manager.filter(pk=row.pk)
    with transaction.atomic():
        before = {name: getattr(rows.select_for_update().get(), name) for name in values}
        rows.update(**values)
        _note(
            actor, action, f"{row._meta.verbose_name} {row.pk}", {"before": before, "after": values}
        )
        if isinstance(row, Submission) and {"visibility", "moderation"} & set(values):
            problem_aggregates.refresh_of([row.pk])
        elif "is_baseline" in values:
            own = Submission.objects.filter(model=row.pk)
            problem_aggregates.refresh_of(own.values_list("pk", flat=True))
        DataVersion.objects.bump()


def _note(actor: AbstractBaseUser, action: str, subject: str, detail: dict[str, Any]) -> None:
    AuditEntry.objects.create(actor_id=actor.pk, action=action, subject=subject, detail=detail)
