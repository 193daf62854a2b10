"""The write-through summary that pages read, and the standings made of it, from stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Lower

from leaderboard import problem_standings
from leaderboard.cell_columns import Packed
from leaderboard.models import Problem, ProblemStanding, Run, Standing, Submission, Summary
from leaderboard.models.runs import SETTING
from leaderboard.prepared import Given, ask, change, given
from leaderboard.standings import columns_of, with_tally
from leaderboard.tallies import Tally, modes_of, tally_of

# Values of the columns SETTING.
Setting = tuple[Any, ...]
Row = tuple[Any, ...]


class Judged(NamedTuple):
    """A counted run, as much of it as a summary needs."""

    kernel__submission_id: int
    kernel__problem_id: int
    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str
    kernel__attempt: int
    id: UUID
    verdict: str
    cause: str | None
    speedup: float | None
    speedup_low: float | None
    utilisation: float | None
    kernel__backend: str
    mechanisms: list[str]
    flags: list[str]
    kernel__source_id: str


PLACE = 2 + len(SETTING)
COLUMNS = Judged._fields
# Within a place the last run of each attempt is the one that counts.
ORDER = (*COLUMNS[:PLACE], "kernel__attempt", "kernel__step", "finished_at", "id")
STORED = ("pk", "submission__k", *Packed._fields, "by_category")


def rewrite(submission_id: int, problem_id: int, setting: Mapping[str, Any] | None = None) -> None:
    """Bring what is known of one submission on one problem up to date, in the caller's
    transaction: in one setting, if that is all that has changed."""
    whose = {"submission": submission_id, "problem": problem_id}
    if setting is None:
        touched = set(Summary.objects.filter(**whose).order_by().values_list(*SETTING))
    else:
        touched = {tuple(setting[name] for name in SETTING)}
    runs = ask(_runs_of, setting is not None, **whose, **(setting or {}))
    found = {_setting_of(row): row for row in _rows(map(Judged._make, runs))}
    scored = ask(_category_of, problem=problem_id)
    for one in sorted(touched | set(found)):
        place = dict(zip(SETTING, one, strict=True))
        row = found.get(one)
        _store(row, {**whose, **place})
        for (category,) in scored:
            tally = tally_of(problem_id, category, row.attempts) if row else None
            _update_standing(submission_id, problem_id, place, tally)
        problem_standings.put(problem_id, place, submission_id, row)


def _runs_of(in_one_setting: bool) -> QuerySet[Run, Row]:
    runs = Run.objects.filter(
        kernel__submission=Given("submission"), kernel__problem=Given("problem")
    )
    if in_one_setting:
        # No index holds the lower case: a database without statistics would look for all runs
        # of that hardware first.
        runs = runs.alias(on=Lower("hardware_id")).filter(on=Given("hardware_id"))
        runs = runs.filter(**given(SETTING[1:]))
    order = ORDER[PLACE:] if in_one_setting else ORDER[2:]
    return runs.counted().order_by(*order).values_list(*COLUMNS)


def _category_of() -> QuerySet[Problem, Row]:
    return Problem.objects.scored().filter(pk=Given("problem")).order_by().values_list("category")


def _store(row: Summary | None, place: Mapping[str, Any]) -> None:
    """In place of what was there."""
    if row is None:
        Summary.objects.filter(**place).delete()
        return
    values = {name: getattr(row, name) for name in SUMMED}
    if not change(_summary_of, columns=SUMMED, **place, **values):
        row.save(force_insert=True)


def _summary_of() -> QuerySet[Summary]:
    return Summary.objects.filter(**given(("submission", "problem", *SETTING)))


def _update_standing(
    submission_id: int, problem_id: int, setting: Mapping[str, Any], tally: Tally | None
) -> None:
    """Put one problem's part of a standing in place of what it was."""
    before = ask(_standing_of, submission=submission_id, **setting)
    if not before:
        if tally:
            k = Submission.objects.values_list("k", flat=True).get(pk=submission_id)
            Standing.objects.create(
                submission_id=submission_id, **setting, **columns_of([tally], k)
            )
        return
    ((pk, k, *packed, by_category),) = before
    columns = with_tally(Packed(*packed), problem_id, tally, k, by_category)
    if columns is None:
        Standing.objects.filter(pk=pk).delete()
    else:
        change(_standing, columns=tuple(columns), pk=pk, **columns)


def _standing_of() -> QuerySet[Standing, Row]:
    own = Standing.objects.filter(**given(("submission", *SETTING))).order_by()
    return own.values_list(*STORED)


def _standing() -> QuerySet[Standing]:
    return Standing.objects.filter(pk=Given("pk"))


def rebuild() -> int:
    """Make every row anew; returns how many there are."""
    with transaction.atomic():
        # A run that finishes meanwhile locks its submission too, and so waits.
        drawn = dict(Submission.objects.select_for_update().values_list("pk", "k"))
        ProblemStanding.objects.all().delete()
        Standing.objects.all().delete()
        Summary.objects.all().delete()
        categories = dict(Problem.objects.scored().values_list("pk", "category"))
        by_submission = groupby(_rows(_judged(Run.objects.all())), lambda row: row.submission_id)
        count = 0
        for submission_id, group in by_submission:
            rows = list(group)
            count += len(Summary.objects.bulk_create(rows, batch_size=1000))
            Standing.objects.bulk_create(_standings(rows, categories, drawn[submission_id]))
        problem_standings.refresh_all()
        return count


def _standings(
    rows: Iterable[Summary], categories: Mapping[int, str], k: int
) -> Iterator[Standing]:
    """Of one submission."""
    groups: dict[Setting, list[Tally]] = {}
    for row in rows:
        if category := categories.get(row.problem_id):
            own = groups.setdefault(_setting_of(row), [])
            own.append(tally_of(row.problem_id, category, row.attempts))
            submission_id = row.submission_id
    for setting, tallies in sorted(groups.items(), key=lambda pair: pair[0]):
        yield Standing(
            submission_id=submission_id,
            **dict(zip(SETTING, setting, strict=True)),
            **columns_of(tallies, k),
        )


def _setting_of(row: Summary) -> Setting:
    return tuple(getattr(row, name) for name in SETTING)


def _judged(runs: Any, order: Sequence[str] = ORDER) -> Iterator[Judged]:
    found = runs.counted().order_by(*order).values_list(*COLUMNS).iterator()
    return map(Judged._make, found)


def _rows(runs: Iterable[Judged]) -> Iterator[Summary]:
    for place, group in groupby(runs, key=lambda run: run[:PLACE]):
        last = {run.kernel__attempt: run for run in group}
        attempts = [_entry(run) for run in last.values()]
        yield Summary(
            submission_id=place[0],
            problem_id=place[1],
            **dict(zip(SETTING, place[2:], strict=True)),
            **summed(attempts),
        )


def _entry(run: Judged) -> dict[str, Any]:
    """A run that was too fast to be true keeps its verdict and loses its numbers."""
    is_correct = run.verdict == "ok"
    return {
        "attempt": run.kernel__attempt,
        "run": str(run.id),
        "verdict": run.verdict,
        "cause": run.cause,
        "speedup": run.speedup if is_correct else None,
        "low": run.speedup_low if is_correct else None,
        "utilisation": run.utilisation if is_correct else None,
        "backend": run.kernel__backend,
        "mechanisms": run.mechanisms,
        "nccl": uses_nccl(run.flags, run.mechanisms),
        "kernel": run.kernel__source_id,
    }


def uses_nccl(flags: Iterable[str], mechanisms: Iterable[str]) -> bool:
    """Whether NCCL was named in the source or seen at work."""
    return "uses_nccl" in flags or "nccl" in mechanisms


# What a Summary holds besides its place.
SUMMED = (
    *("made", "correct", "best_speedup", "best_low", "utilisation", "best_run_id"),
    *("modes", "attempts"),
)


def summed(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    correct = [entry for entry in attempts if entry["speedup"] is not None]
    best = max(correct, key=lambda entry: entry["speedup"], default={})
    best_run = UUID(best["run"]) if best else None
    values = (
        *(len(attempts), len(correct), best.get("speedup"), best.get("low")),
        *(best.get("utilisation"), best_run, modes_of(attempts), attempts),
    )
    return dict(zip(SUMMED, values, strict=True))
