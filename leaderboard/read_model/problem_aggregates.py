"""Aggregate each problem in each setting over the submissions that boards show."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import FilteredRelation, Q, QuerySet

from leaderboard.kit.json_types import JsonDict
from leaderboard.metrics.tallies import in_order
from leaderboard.models import Notice, Problem, ProblemAggregate, Summary
from leaderboard.models.runs import SETTING
from leaderboard.read_model.boards import Setting

WHERE = ("problem_id", *SETTING)


class Best(NamedTuple):
    """Holds what a submission's Summary adds to a problem."""

    submission__model__is_baseline: bool
    submission__model_id: int
    made: int
    correct: int
    best_speedup: float | None
    best_low: float | None
    utilisation: float | None
    best_run_id: UUID | None
    baseline_us: float | None
    modes: Mapping[str, int]


def refresh(problem_id: int, setting: Mapping[str, object]) -> None:
    """Aggregate one problem in one setting anew, in the caller's transaction."""
    _lock(problem_id)
    where = {"problem_id": problem_id, **setting}
    fastest = ProblemAggregate.objects.filter(best_speedup__gt=0, **where).order_by()
    before = fastest.values_list("run_id", flat=True).first()
    shown = Summary.objects.shown().filter(**where).order_by("submission_id")
    columns = columns_of(map(Best._make, shown.values_list(*Best._fields)))
    ProblemAggregate.objects.put(where, columns)
    if before and columns and columns["best_speedup"] and before != columns["run_id"]:
        Notice.objects.record_lost(before, columns["run_id"])


def refresh_of(submissions: Iterable[int]) -> None:
    """Aggregate all that these submissions have to do with, when staff show or hide them."""
    touched = Summary.objects.filter(submission__in=list(submissions))
    for problem_id, *setting in sorted(set(touched.order_by().values_list(*WHERE))):
        refresh(problem_id, dict(zip(SETTING, setting, strict=True)))


@transaction.atomic
def refresh_all(problem_id: int) -> None:
    """Recompute the aggregates of one problem in every setting."""
    _lock(problem_id)
    ProblemAggregate.objects.filter(problem=problem_id).delete()
    ProblemAggregate.objects.bulk_create(_every(problem_id))


def lock_all() -> None:
    """Lock every problem, in the order of their numbers, before a change to many: results lock
    those of their submission in the same order."""
    list(Problem.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))


def _lock(problem_id: int) -> None:
    """Let submissions that end together see each other: one waits here for the other."""
    list(Problem.objects.select_for_update(no_key=True).filter(pk=problem_id).values_list("pk"))


def _every(problem_id: int) -> Iterator[ProblemAggregate]:
    own = Summary.objects.shown().filter(problem=problem_id).order_by(*WHERE, "submission_id")
    found = own.values_list(*WHERE, *Best._fields)
    for place, group in groupby(found, key=lambda row: row[: len(WHERE)]):
        columns = columns_of(Best._make(row[len(WHERE) :]) for row in group)
        yield ProblemAggregate(**dict(zip(WHERE, place, strict=True)), **(columns or {}))


def place_of(setting: Setting | None) -> dict[str, object]:
    """Return a setting as `beside` takes it; none has no aggregate."""
    return {**vars(setting)} if setting else {"hardware_id": ""}


def beside(
    problems: QuerySet[Problem], setting: Mapping[str, object], name: str = "here"
) -> QuerySet[Problem]:
    """Return problems with, by this name, the ProblemAggregate of each in a setting, if any."""
    where = Q(**{f"aggregates__{name}": value for name, value in setting.items()})
    return problems.annotate(**{name: FilteredRelation("aggregates", condition=where)})


def columns_of(summaries: Iterable[Best]) -> JsonDict | None:
    """Return what a ProblemAggregate holds besides its place; None of no rows."""
    rows = list(summaries)
    if not rows:
        return None
    models = [row for row in rows if not row.submission__model__is_baseline]
    solved = [row for row in models if row.correct]
    best = max(solved, key=lambda row: row.best_speedup or 0.0, default=None)
    used = [row.utilisation for row in models if row.utilisation is not None]
    references = [row.best_run_id for row in rows if row.best_run_id]
    return {
        "submissions": len(models),
        "solved": len(solved),
        "models_tried": len({row.submission__model_id for row in models}),
        "models_solved": len({row.submission__model_id for row in solved}),
        "best_speedup": best and best.best_speedup,
        "utilisation": best and best.utilisation,
        "usual_utilisation": statistics.median(used) if used else None,
        "run_id": best.best_run_id if best else next(reversed(references), None),
        "made": sum(row.made for row in models),
        "correct": sum(row.correct for row in models),
        "faster": sum(row.best_low > 1.0 for row in models if row.best_low is not None),
        "modes": in_order(_added(row.modes for row in models)),
        "baseline_runs": sum(row.correct for row in rows if row.baseline_us is not None),
        **_reference([row.baseline_us for row in rows if row.baseline_us is not None]),
    }


def _added(modes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for own in modes:
        for mode, n in own.items():
            found[mode] = found.get(mode, 0) + n
    return found


def _reference(taken: Sequence[float]) -> dict[str, float | None]:
    """Return the median of times, and their quartiles."""
    names = ("baseline_low_us", "baseline_us", "baseline_high_us")
    if len(taken) < 2:
        return dict.fromkeys(names, next(iter(taken), None))
    cuts = statistics.quantiles(taken, n=4, method="inclusive")
    return dict(zip(names, cuts, strict=True))
