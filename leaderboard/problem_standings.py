"""What each problem came to in each setting, over the submissions that boards show."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.models import FilteredRelation, Q, QuerySet

from leaderboard.boards import Setting
from leaderboard.models import Problem, ProblemStanding, Submission, Summary
from leaderboard.models.runs import SETTING
from leaderboard.prepared import Given, ask, change, given


class Best(NamedTuple):
    """Of one submission, its attempts and its fastest correct kernel."""

    submission_id: int
    submission__model__is_baseline: bool
    made: int
    correct: int
    best_speedup: float | None
    best_low: float | None
    utilisation: float | None
    best_run_id: UUID | str | None
    modes: Sequence[int]


WHERE = (*SETTING, "problem_id")
Row = tuple[Any, ...]


def put(
    problem_id: int, setting: Mapping[str, Any], submission_id: int, own: Summary | None
) -> None:
    """A submission's part in place of what it was, in the caller's transaction; None leaves it
    out."""

    def parts(before: Iterable[Best]) -> list[Best]:
        shown = ask(_shown, submission=submission_id) if own else []
        found = [part for part in before if part.submission_id != submission_id]
        found += [_part(own, is_baseline) for (is_baseline,) in shown if own]
        return sorted(found)

    _change({"problem_id": problem_id, **setting}, parts)


def refresh(problem_id: int, setting: Mapping[str, Any]) -> None:
    """Of one problem in one setting, from the summary, in the caller's transaction."""
    place = {"problem_id": problem_id, **setting}
    _change(place, lambda _: map(Best._make, ask(_summaries, **place)))


def _change(place: Mapping[str, Any], parts: Callable[[Iterable[Best]], Iterable[Best]]) -> None:
    # Submissions that end together must see each other, so one waits here for the other.
    known = ask(_locked, **place)
    if not known:
        none = dict.fromkeys(("submissions", "solved", "made", "correct", "faster"), 0)
        empty = ProblemStanding(**place, **none, modes=[], parts="[]")
        ProblemStanding.objects.bulk_create([empty], ignore_conflicts=True)
        known = ask(_locked, **place)
    ((pk, before),) = known
    columns = columns_of(parts(map(Best._make, orjson.loads(before))))
    if columns is None:
        ProblemStanding.objects.filter(pk=pk).delete()
    else:
        change(_standing, columns=tuple(columns), pk=pk, **columns)


def _locked() -> QuerySet[ProblemStanding, Row]:
    own = ProblemStanding.objects.filter(**given(WHERE)).order_by()
    return own.select_for_update().values_list("pk", "parts")


def _shown() -> QuerySet[Submission, Row]:
    own = Submission.objects.ranked().filter(pk=Given("submission")).order_by()
    return own.values_list("model__is_baseline")


def _summaries() -> QuerySet[Summary, Row]:
    found = Summary.objects.shown().filter(**given(WHERE)).order_by("submission_id")
    return found.values_list(*Best._fields)


def _part(own: Summary, is_baseline: bool) -> Best:
    known = {name: value for name, value in vars(own).items() if name in Best._fields}
    return Best(submission__model__is_baseline=is_baseline, **known)


def _standing() -> QuerySet[ProblemStanding]:
    return ProblemStanding.objects.filter(pk=Given("pk"))


def refresh_of(submissions: Iterable[int]) -> None:
    """Of all that these submissions have to do with, when staff show or hide them."""
    touched = Summary.objects.filter(submission__in=list(submissions))
    for *setting, problem_id in sorted(set(touched.order_by().values_list(*WHERE))):
        refresh(problem_id, dict(zip(SETTING, setting, strict=True)))


def refresh_all() -> None:
    ProblemStanding.objects.all().delete()
    ProblemStanding.objects.bulk_create(_every(), batch_size=500)


def _every() -> Iterator[ProblemStanding]:
    ranked = Summary.objects.shown().order_by(*WHERE, "submission_id")
    rows = ranked.values_list(*WHERE, *Best._fields).iterator()
    for place, group in groupby(rows, key=lambda row: row[: len(WHERE)]):
        columns = columns_of(Best(*row[len(WHERE) :]) for row in group)
        if columns:
            yield ProblemStanding(**dict(zip(WHERE, place, strict=True)), **columns)


def place_of(setting: Setting | None) -> dict[str, Any]:
    """A setting as `beside` takes it; none has no standing."""
    return {**vars(setting)} if setting else {"hardware_id": ""}


def beside(problems: QuerySet[Problem], setting: Mapping[str, Any]) -> QuerySet[Problem]:
    """With `here`, the ProblemStanding of each in this setting, as far as there is one."""
    where = Q(**{f"standings__{name}": value for name, value in setting.items()})
    return problems.annotate(here=FilteredRelation("standings", condition=where))


def columns_of(rows: Iterable[Best]) -> dict[str, Any] | None:
    """What a ProblemStanding holds besides its place, of rows by submission."""
    found = list(rows)
    if not found:
        return None
    models = [row for row in found if not row.submission__model__is_baseline]
    solved = [row for row in models if row.best_speedup is not None]
    timed = [row for row in found if row.best_speedup is not None][-1:]
    best = max(solved, key=lambda row: row.best_speedup or 0.0, default=None)
    known = [row.utilisation for row in solved if row.utilisation is not None]
    return {
        "parts": orjson.dumps(found, default=tuple).decode(),
        "submissions": len(models),
        "made": sum(row.made for row in models),
        "correct": sum(row.correct for row in models),
        "faster": sum((row.best_low or 0.0) > 1.0 for row in models),
        "modes": [sum(counts) for counts in zip(*(row.modes for row in models), strict=True)],
        "solved": len(solved),
        "best_speedup": best and best.best_speedup,
        "utilisation": best and best.utilisation,
        "usual_utilisation": statistics.median(known) if known else None,
        "run_id": best.best_run_id if best else timed[0].best_run_id if timed else None,
    }
