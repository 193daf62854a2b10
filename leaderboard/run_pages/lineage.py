"""Finds the attempts and steps beside a kernel: what its model wrote for the same problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, IntegerField, QuerySet
from django.db.models.functions import Abs

from leaderboard.kit.prepared import Given, ask, given
from leaderboard.models import Kernel

PLACE = ("submission_id", "problem_id", "attempt", "step")
MOST_SIBLINGS, MOST_RESULTS, MOST_STEPS = 100, 1_000, 1 << 16


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """Holds a kernel with its newest result in one setting; `is_here` marks the one asked about."""

    attempt: int
    step: int
    backend: str
    digest: str
    run: str | None
    verdict: str | None
    speedup: float | None
    is_here: bool


def lineage(kernel: Kernel, setting: Mapping[str, object]) -> list[Sibling]:
    """Return the nearest attempts and steps of the same submission and problem, in their order.

    Results of another setting would not compare, so `setting` says which runs to look at.
    """
    place = {name: getattr(kernel, name) for name in PLACE}
    near = ask(_near, tuple(setting), **place)
    found: dict[int, Sibling] = {}
    for attempt, step, backend, digest, pk, run, verdict, speedup, *where in near:
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
        )
    shown = list(found.values())[:MOST_SIBLINGS]
    return sorted(shown, key=lambda sibling: (sibling.attempt, sibling.step))


def _near(setting: Sequence[str]) -> QuerySet[Kernel, tuple[Any, ...]]:
    results = (f"runs__{name}" for name in ("pk", "verdict", "speedup", *setting))
    of_both = given(("submission_id", "problem_id"))
    return (
        Kernel.objects.filter(**of_both)
        .order_by(_distance(), "-runs__created_at", "-runs__id")
        .values_list("attempt", "step", "backend", "source_id", "pk", *results)
    )[:MOST_RESULTS]


def _distance() -> Abs:
    """In steps, as if each attempt had MOST_STEPS."""
    attempts, steps = (F(name) - Given(name, IntegerField()) for name in ("attempt", "step"))
    return Abs(attempts * MOST_STEPS + steps)


def previous(siblings: Sequence[Sibling]) -> Sibling | None:
    """Return the step before the one asked about, or the last step of the attempt before."""
    here = next((i for i, sibling in enumerate(siblings) if sibling.is_here), 0)
    return siblings[here - 1] if here else None
