"""Finds kernels of a submission whose source was handed in for the same problem before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F

from leaderboard.models import Kernel, Submission
from leaderboard.models.teams import Viewer

MOST = 100


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Holds a source, its problem, and the first of the other submissions that it is in."""

    kernel: str
    problem: str
    submission: int


def seen_before(submission: Submission, viewer: Viewer) -> Sequence[Seen]:
    """Return the sources that were here before, at most MOST, of submissions that lists show to
    this viewer: nobody learns by an upload what is private."""
    shown = Submission.objects.listed_for(viewer).filter(pk__lt=submission.pk)
    own = Kernel.objects.filter(submission=submission).values("source")
    earlier = Kernel.objects.filter(source__in=own, submission__in=shown)
    same = earlier.filter(
        problem__kernels__submission=submission, problem__kernels__source=F("source")
    )
    columns = ("source_id", "problem__slug", "submission_id")
    first: dict[tuple[str, str], Seen] = {}
    for kernel, problem, number in same.order_by("submission_id").values_list(*columns)[:MOST]:
        seen = Seen(kernel=kernel, problem=problem, submission=number)
        first.setdefault((kernel, problem), seen)
    return list(first.values())
