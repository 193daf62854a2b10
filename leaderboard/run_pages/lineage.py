"""Finds the attempts and steps beside a kernel: what its model wrote for the same problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.functions import Abs

from leaderboard.models import Kernel
from leaderboard.models.staleness import outdated

MOST_SIBLINGS, MOST_RESULTS, MOST_STEPS = 100, 1_000, 1 << 16


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """Holds a kernel with its newest result in one setting; `is_here` marks the one asked about,
    `stale` says why its result is."""

    attempt: int
    step: int
    backend: str
    digest: str
    run: str | None
    verdict: str | None
    speedup: float | None
    is_here: bool
    stale: str


def lineage(kernel: Kernel, setting: Mapping[str, object]) -> list[Sibling]:
    """Return the nearest attempts and steps of the same submission and problem, in their order.

    Results of another setting would not compare, so `setting` says which runs to look at.
    """
    found: dict[int, Sibling] = {}
    today, judge = kernel.problem.digest, str(setting.get("judge_version"))
    placement = str(setting.get("placement"))
    for attempt, step, backend, digest, pk, older, run, verdict, speedup, of, *where in _near(
        kernel, setting
    ):
        counts = verdict is not None and where == list(setting.values())
        if pk in found and (found[pk].verdict is not None or not counts):
            continue
        found[pk] = Sibling(
            attempt=attempt,
            step=step,
            backend=backend,
            digest=digest,
            run=str(run) if counts else None,
            verdict=verdict if counts else None,
            speedup=speedup if counts else None,
            is_here=pk == kernel.pk,
            stale=outdated(of, today, judge, older, placement) if counts else "",
        )
    shown = list(found.values())[:MOST_SIBLINGS]
    return sorted(shown, key=lambda sibling: (sibling.attempt, sibling.step))


def _near(kernel: Kernel, setting: Iterable[str]) -> QuerySet[Kernel, tuple[Any, ...]]:
    results = (f"runs__{name}" for name in ("pk", "verdict", "speedup", "problem_digest", *setting))
    # In steps, as if each attempt had MOST_STEPS.
    attempts, steps = F("attempt") - kernel.attempt, F("step") - kernel.step
    distance = Abs(attempts * MOST_STEPS + steps)
    return (
        Kernel.objects.filter(submission=kernel.submission_id, problem=kernel.problem_id)
        .order_by(distance, "-runs__created_at", "-runs__id")
        .values_list("attempt", "step", "backend", "source_id", "pk", "older_task", *results)
    )[:MOST_RESULTS]


def previous(siblings: Sequence[Sibling]) -> Sibling | None:
    """Return the step before the one asked about, or the last step of the attempt before."""
    here = next((i for i, sibling in enumerate(siblings) if sibling.is_here), 0)
    return siblings[here - 1] if here else None
