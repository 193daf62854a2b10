"""The attempts and steps that a kernel stands among: what its model wrote for the same problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Abs

from leaderboard.models import Kernel, Run

MOST_SIBLINGS = 100


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A kernel with its newest result in one setting; `is_here` marks the one asked about."""

    attempt: int
    step: int
    backend: str
    digest: str
    verdict: str | None
    speedup: float | None
    is_here: bool


def lineage(kernel: Kernel, setting: Mapping[str, Any]) -> list[Sibling]:
    """The nearest attempts and steps of the same submission and problem, in their order.

    Results of another setting would not compare, so `setting` says which runs to look at.
    """
    judged = Run.objects.filter(kernel=OuterRef("pk"), verdict__isnull=False, **setting)
    newest = judged.order_by("-created_at", "-id")
    near = (
        Kernel.objects.filter(submission=kernel.submission_id, problem=kernel.problem_id)
        .annotate(
            found=Subquery(newest.values("verdict")[:1]),
            ratio=Subquery(newest.values("speedup")[:1]),
        )
        .order_by(Abs(F("attempt") - kernel.attempt), Abs(F("step") - kernel.step))
        .values_list("attempt", "step", "backend", "source_id", "found", "ratio", "pk")
    )
    return [
        Sibling(
            attempt=attempt,
            step=step,
            backend=backend,
            digest=digest,
            verdict=verdict,
            speedup=speedup,
            is_here=pk == kernel.pk,
        )
        for attempt, step, backend, digest, verdict, speedup, pk in sorted(near[:MOST_SIBLINGS])
    ]


def previous(siblings: Sequence[Sibling]) -> Sibling | None:
    """The step before the one asked about, or the last step of the attempt before."""
    here = next((i for i, sibling in enumerate(siblings) if sibling.is_here), 0)
    return siblings[here - 1] if here else None
