"""What each problem came to in each setting, over the submissions that boards show."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.models import FilteredRelation, Q, QuerySet

from leaderboard.boards import Setting
from leaderboard.models import Problem, ProblemStanding, Summary
from leaderboard.models.runs import SETTING
from leaderboard.prepared import Given, ask, change, given, send


class Best(NamedTuple):
    """Of one submission, its attempts, its fastest correct kernel, and what the reference took
    beside the correct ones, in the median."""

    submission_id: int
    submission__model__is_baseline: bool
    made: int
    correct: int
    best_speedup: float | None
    best_low: float | None
    utilisation: float | None
    best_run_id: UUID | str | None
    modes: Sequence[int]
    baseline_us: float | None


WHERE = (*SETTING, "problem_id")
# What a Summary has of a Best: its last field is made of the attempts.
SUMMED = (*Best._fields[:-1], "attempts")
Row = tuple[Any, ...]


class Locked(NamedTuple):
    """A row that nobody else changes before the caller's transaction has ended."""

    pk: int
    parts: str


def lock(place: Mapping[str, Any]) -> Callable[[], Locked]:
    """Asks for the row of WHERE; what comes back waits for it, and makes a new one if need be.
    Submissions that end together must see each other, so one waits there for the other."""
    where = {name: place[name] for name in WHERE}
    return partial(_locked, where, send(_row, **where))


def _locked(where: Mapping[str, Any], found: Callable[[], Sequence[Row]]) -> Locked:
    known = found()
    if not known:
        counts = ("submissions", "solved", "made", "correct", "faster", "baseline_runs")
        none = dict.fromkeys(counts, 0)
        empty = ProblemStanding(**where, **none, modes=[], parts="[]")
        ProblemStanding.objects.bulk_create([empty], ignore_conflicts=True)
        known = ask(_row, **where)
    return Locked._make(known[0])


def put(row: Locked, submission_id: int, is_baseline: bool, own: Mapping[str, Any] | None) -> None:
    """A submission's part in place of what it was: what its Summary holds, or None, which leaves it
    out."""
    parts = orjson.loads(row.parts)
    at = bisect_left(parts, submission_id, key=itemgetter(0))
    end = bisect_right(parts, submission_id, key=itemgetter(0))
    facts = SUMMED[2:]
    parts[at:end] = [_best((submission_id, is_baseline, *map(own.get, facts)))] if own else ()
    _store(row.pk, parts)


def refresh(problem_id: int, setting: Mapping[str, Any]) -> None:
    """Of one problem in one setting, from the summary, in the caller's transaction."""
    place = {"problem_id": problem_id, **setting}
    row = lock(place)()
    _store(row.pk, map(_best, ask(_summaries, **place)))


def _store(pk: int, parts: Iterable[Sequence[Any]]) -> None:
    columns = columns_of(parts)
    if columns is None:
        ProblemStanding.objects.filter(pk=pk).delete()
    else:
        change(_standing, columns=tuple(columns), pk=pk, **columns)


def _row() -> QuerySet[ProblemStanding, Row]:
    own = ProblemStanding.objects.filter(**given(WHERE)).order_by()
    return own.select_for_update().values_list("pk", "parts")


def _summaries() -> QuerySet[Summary, Row]:
    found = Summary.objects.shown().filter(**given(WHERE)).order_by("submission_id")
    return found.values_list(*SUMMED)


def _best(row: Row) -> Row:
    """To the nanosecond: those of all submissions are read and written with each result."""
    *facts, attempts = row
    taken = [us for entry in attempts if (us := entry["baseline_us"]) is not None]
    return (*facts, round(statistics.median(taken), 3) if taken else None)


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
    rows = ranked.values_list(*WHERE, *SUMMED).iterator()
    for place, group in groupby(rows, key=lambda row: row[: len(WHERE)]):
        columns = columns_of(_best(row[len(WHERE) :]) for row in group)
        if columns:
            yield ProblemStanding(**dict(zip(WHERE, place, strict=True)), **columns)


def place_of(setting: Setting | None) -> dict[str, Any]:
    """A setting as `beside` takes it; none has no standing."""
    return {**vars(setting)} if setting else {"hardware_id": ""}


def beside(problems: QuerySet[Problem], setting: Mapping[str, Any]) -> QuerySet[Problem]:
    """With `here`, the ProblemStanding of each in this setting, as far as there is one."""
    where = Q(**{f"standings__{name}": value for name, value in setting.items()})
    return problems.annotate(here=FilteredRelation("standings", condition=where))


def columns_of(rows: Iterable[Sequence[Any]]) -> dict[str, Any] | None:
    """What a ProblemStanding holds besides its place, of rows with the fields of Best, by
    submission. Column by column, which takes half the time."""
    parts = list(rows)
    if not parts:
        return None
    every: Any = Best._make(zip(*parts, strict=True))
    own = [not is_baseline for is_baseline in every.submission__model__is_baseline]
    models: Any = Best._make(list(compress(column, own)) for column in every)
    known = [value for value in models.utilisation if value is not None]
    fastest = _fastest(models.best_speedup)
    run_id = None if fastest is None else models.best_run_id[fastest]
    return {
        "parts": orjson.dumps(parts, default=tuple).decode(),
        "submissions": len(models.made),
        "made": sum(models.made),
        "correct": sum(models.correct),
        "faster": sum((low or 0.0) > 1.0 for low in models.best_low),
        "modes": [sum(counts) for counts in zip(*models.modes, strict=True)],
        "solved": sum(speedup is not None for speedup in models.best_speedup),
        "best_speedup": None if fastest is None else models.best_speedup[fastest],
        "utilisation": None if fastest is None else models.utilisation[fastest],
        "usual_utilisation": statistics.median(known) if known else None,
        "run_id": run_id or next(filter(None, reversed(every.best_run_id)), None),
        "baseline_runs": sum(every.correct),
        **_reference([us for us in every.baseline_us if us is not None]),
    }


def _reference(taken: Sequence[float]) -> dict[str, float | None]:
    """The median of times, and their quartiles."""
    names = ("baseline_low_us", "baseline_us", "baseline_high_us")
    if len(taken) < 2:
        return dict.fromkeys(names, next(iter(taken), None))
    cuts = statistics.quantiles(taken, n=4, method="inclusive")
    return dict(zip(names, cuts, strict=True))


def _fastest(speedups: Sequence[float | None]) -> int | None:
    """Where the first of the greatest stands; None where nobody solved it."""
    best = max(filter(None, speedups), default=None)
    return None if best is None else speedups.index(best)
