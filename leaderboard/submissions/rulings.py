"""Rules on single results: a run, or all runs of a source. Their rows are never changed."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from leaderboard.kit.request_error import RequestError
from leaderboard.models import DataVersion, Kernel, Moderation, Ruling, Run, Source, Submission
from leaderboard.models.rulings import MAX_REASON
from leaderboard.read_model import problem_aggregates, summary
from leaderboard.submissions.moderation import note


def ruling_on(subject: Run | Source) -> Ruling | None:
    return Ruling.objects.filter(**_key(subject)).first()


def rule(
    subject: Run | Source, actor: AbstractBaseUser | None, moderation: Moderation, reason: str
) -> None:
    """Dispute or invalidate a run or a source, for a public reason, or accept it again without one,
    and bring every score along. Raises RequestError."""
    reason = checked_reason(reason) if moderation != Moderation.ACCEPTED else ""
    with transaction.atomic():
        kernels = _kernels(subject)
        # A run that finishes meanwhile locks its submission too, and so waits.
        whose = sorted({kernel.submission_id for kernel in kernels})
        list(Submission.objects.select_for_update().filter(pk__in=whose).order_by("pk"))
        problem_aggregates.lock_all()
        before = ruling_on(subject)
        if moderation == Moderation.ACCEPTED:
            Ruling.objects.filter(**_key(subject)).delete()
        else:
            said = {"moderation": moderation.value, "reason": reason}
            Ruling.objects.update_or_create(**_key(subject), defaults=said)
        for place in sorted({(kernel.submission_id, kernel.problem_id) for kernel in kernels}):
            summary.rewrite(*place)
        was = {"moderation": before.moderation, "reason": before.reason} if before else {}
        now = {"moderation": moderation.value, "reason": reason}
        note(actor, "rule", f"{_kind(subject)} {subject.pk}", {"before": was, "after": now})
        DataVersion.objects.bump()


def checked_reason(reason: str, most: int = MAX_REASON) -> str:
    """Return a reason without the blanks around it. Raises RequestError where there is none, more
    than fits, or a NUL, which no database takes."""
    reason = reason.strip()
    if not 0 < len(reason) <= most:
        message = f"A reason has 1 to {most} characters; this one has {len(reason)}."
        raise RequestError("bad_reason", message, "Say why in a few sentences.")
    if "\0" in reason:
        raise RequestError("bad_reason", "The reason has a NUL character.", "Leave it out.")
    return reason


def _kind(subject: Run | Source) -> str:
    return "run" if isinstance(subject, Run) else "source"


def _key(subject: Run | Source) -> dict[str, Any]:
    return {_kind(subject): subject}


def _kernels(subject: Run | Source) -> list[Kernel]:
    if isinstance(subject, Run):
        return list(Kernel.objects.filter(pk=subject.kernel_id))
    return list(Kernel.objects.filter(source=subject))
