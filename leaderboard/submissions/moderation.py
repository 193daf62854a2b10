"""Changes what staff may change, each with an entry in the audit log; results never."""

from __future__ import annotations

import json

from django.contrib.auth.models import AbstractBaseUser
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Model

from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    AuditEntry,
    DataVersion,
    Hardware,
    LanguageModel,
    Moderation,
    Notice,
    Status,
    Submission,
    Visibility,
)
from leaderboard.models.runs import RunQuerySet
from leaderboard.read_model import problem_aggregates

# What readers of a submission are told, unless staff have more to say.
NOT_TRUSTED = "It was judged on a host that is no longer trusted."


def moderate(
    submission: Submission, actor: AbstractBaseUser, moderation: Moderation, reason: str
) -> None:
    """Accept, dispute or invalidate a submission. The reason is public. Raises RequestError."""
    if moderation == Moderation.WITHDRAWN:
        message = "Nobody but its owner withdraws a submission."
        raise RequestError("owner_withdraws", message, "Dispute or invalidate it.")
    if (moderation == Moderation.ACCEPTED) != (not reason.strip()):
        raise RequestError(
            "bad_reason",
            "A disputed or invalidated submission needs a public reason; an accepted one has none.",
            "Say why, or leave the reason empty to accept.",
        )
    said = {"moderation": moderation, "moderation_reason": reason.strip()}
    with transaction.atomic():
        change(submission, actor, "moderate", **said)
        Notice.objects.moderated(submission, moderation, reason.strip())


def show(submission: Submission, actor: AbstractBaseUser, visibility: Visibility) -> None:
    ends_embargo = submission.public_from and visibility == Visibility.PUBLIC
    ended = {"public_from": None} if ends_embargo else {}
    change(submission, actor, "show", visibility=visibility, **ended)


def edit(row: LanguageModel | Hardware, actor: AbstractBaseUser, **values: object) -> None:
    change(row, actor, "edit", **values)


def note_token(token: ApiToken, actor: AbstractBaseUser | None) -> None:
    """Log that a token was made: what it is for, never its text."""
    told = ("name", "scope", "owner_id", "queues", "hosts", "groups")
    note(actor, "make", f"token {token.prefix}", {name: getattr(token, name) for name in told})


def revoke(token: ApiToken, actor: AbstractBaseUser) -> None:
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk).revoke():
            note(actor, "revoke", f"token {token.prefix}", {})


def invalidate_judged(runs: RunQuerySet, actor: AbstractBaseUser, reason: str) -> list[int]:
    """Invalidate every accepted submission that has a result among these runs; return their
    numbers. The reason is public. Raises RequestError."""
    with transaction.atomic():
        judged = runs.filter(status=Status.DONE).values("kernel__submission")
        accepted = Submission.objects.filter(pk__in=judged, moderation=Moderation.ACCEPTED)
        submissions = list(accepted.order_by("pk"))
        problem_aggregates.lock_all()
        for submission in submissions:
            moderate(submission, actor, Moderation.INVALIDATED, reason)
    return [submission.pk for submission in submissions]


def change(row: Model, actor: AbstractBaseUser | None, action: str, **values: object) -> None:
    """Change these values of a row with what pages and boards read of it, and log what it was."""
    rows = type(row)._default_manager.filter(pk=row.pk)
    with transaction.atomic():
        before = {name: getattr(rows.select_for_update().get(), name) for name in values}
        rows.update(**values)
        note(
            actor, action, f"{row._meta.verbose_name} {row.pk}", {"before": before, "after": values}
        )
        if isinstance(row, Submission) and {"visibility", "moderation"} & set(values):
            if before.get("visibility") == Visibility.PRIVATE:
                named = LanguageModel.objects.named(row.model.name, row.model.vendor)
                Submission.objects.filter(pk=row.pk).update(model=named)
            problem_aggregates.refresh_of([row.pk])
        elif "is_baseline" in values:
            own = Submission.objects.filter(model=row.pk)
            problem_aggregates.refresh_of(own.values_list("pk", flat=True))
        DataVersion.objects.bump()


def note(
    actor: AbstractBaseUser | None, action: str, subject: str, detail: dict[str, object]
) -> None:
    """Keep in the audit log what was done; the actor is None for the command line and the sweep."""
    kept = json.loads(json.dumps(detail, cls=DjangoJSONEncoder))
    AuditEntry.objects.create(
        actor_id=actor.pk if actor else None, action=action, subject=subject, detail=kept
    )
