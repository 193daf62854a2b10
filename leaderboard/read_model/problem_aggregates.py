"""What each problem came to in each setting, over the submissions that boards show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import filterfalse, groupby
from typing import Any, NamedTuple

from django.db.models import FilteredRelation, Q, QuerySet

from leaderboard.kit.prepared import Given, ask, change, given, send
from leaderboard.models import Problem, ProblemStanding, Summary
from leaderboard.models.runs import SETTING
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.problem_parts import Best, Parts

WHERE = (*SETTING, "problem_id")
# What a Summary has of a Best: its last field is made of the attempts.
SUMMED = (*Best._fields[:-1], "attempts")
Row = tuple[Any, ...]


class Locked(NamedTuple):
    """A row that nobody else changes before the caller's transaction has ended."""

    pk: int
    parts: bytes | memoryview


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
        empty = ProblemStanding(**where, **none, modes=[], parts=b"")
        ProblemStanding.objects.bulk_create([empty], ignore_conflicts=True)
        known = ask(_row, **where)
    return Locked._make(known[0])


def put(row: Locked, submission_id: int, is_baseline: bool, own: Mapping[str, Any] | None) -> None:
    """A submission's part in place of what it was: what its Summary holds, or None, which leaves it
    out."""
    parts = Parts.unpack(row.parts)
    known = (submission_id, is_baseline, *map(own.get, SUMMED[2:])) if own else None
    parts.put(submission_id, _best(known) if known else None)
    _store(row.pk, parts)


def refresh(problem_id: int, setting: Mapping[str, Any]) -> None:
    """Of one problem in one setting, from the summary, in the caller's transaction."""
    place = {"problem_id": problem_id, **setting}
    row = lock(place)()
    _store(row.pk, Parts.of(map(_best, ask(_summaries, **place))))


def _store(pk: int, parts: Parts) -> None:
    columns = _columns(parts)
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


def _best(row: Row) -> Best:
    """To the nanosecond: those of all submissions are read and written with each result."""
    *facts, attempts = row
    taken = [us for entry in attempts if (us := entry["baseline_us"]) is not None]
    return Best._make((*facts, round(statistics.median(taken), 3) if taken else None))


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


def columns_of(rows: Iterable[Best]) -> dict[str, Any] | None:
    """What a ProblemStanding holds besides its place; None of no rows."""
    return _columns(Parts.of(rows))


def _columns(parts: Parts) -> dict[str, Any] | None:
    if not parts.submission:
        return None
    models = parts.of_models()
    solved, used = _known(models.best_speedup), _known(models.utilisation)
    best = max(solved, default=None)
    at = None if best is None else models.best_speedup.index(best)
    every_run = map(parts.run, reversed(range(len(parts.submission))))
    return {
        "parts": parts.pack(),
        "submissions": len(models.submission),
        "made": sum(models.made),
        "correct": sum(models.correct),
        "faster": sum(map((1.0).__lt__, models.best_low)),
        "modes": models.modes_added(),
        "solved": len(solved),
        "best_speedup": best,
        "utilisation": None if at is None else _one(models.utilisation[at : at + 1]),
        "usual_utilisation": statistics.median(used) if used else None,
        "run_id": next(filter(None, every_run), None) if at is None else models.run(at),
        "baseline_runs": sum(parts.correct),
        **_reference(_known(parts.baseline_us)),
    }


def _known(numbers: Iterable[float]) -> list[float]:
    return list(filterfalse(math.isnan, numbers))


def _one(numbers: Iterable[float]) -> float | None:
    return next(iter(_known(numbers)), None)


def _reference(taken: Sequence[float]) -> dict[str, float | None]:
    """The median of times, and their quartiles."""
    names = ("baseline_low_us", "baseline_us", "baseline_high_us")
    if len(taken) < 2:
        return dict.fromkeys(names, _one(taken))
    cuts = statistics.quantiles(taken, n=4, method="inclusive")
    return dict(zip(names, cuts, strict=True))
