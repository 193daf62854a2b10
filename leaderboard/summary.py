"""The write-through summary that pages read, and the standings made of it, from stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, TypedDict
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.fields.json import KT

from leaderboard.models import Problem, Run, Standing, Submission, Summary
from leaderboard.models.runs import SETTING
from leaderboard.standings import columns_of, unpack
from leaderboard.tallies import Subject, Tally, tallies_of

# Values of the columns SETTING.
Setting = tuple[Any, ...]


class Judged(TypedDict):
    """A counted run, as much of it as a summary needs."""

    id: UUID
    kernel__submission_id: int
    kernel__problem_id: int
    kernel__attempt: int
    kernel__step: int
    kernel__backend: str
    kernel__source_id: str
    verdict: str
    cause: str | None
    speedup: float | None
    speedup_low: float | None
    utilisation: float | None
    mechanisms: list[str]
    flags: list[str]
    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str


PLACE = ("kernel__submission_id", "kernel__problem_id", *SETTING)
# Within a place the last run of each attempt is the one that counts.
ORDER = (*PLACE, "kernel__attempt", "kernel__step", "finished_at", "id")
COLUMNS = (*Judged.__annotations__,)


def rewrite(submission_id: int, problem_id: int, setting: Mapping[str, Any] | None = None) -> None:
    """Bring what is known of one submission on one problem up to date, in the caller's
    transaction: in one setting, if that is all that has changed."""
    only = setting or {}
    place = Q(submission=submission_id, problem=problem_id, **only)
    touched = set(Summary.objects.filter(place).order_by().values_list(*SETTING))
    if touched:
        Summary.objects.filter(place).delete()
    runs = Run.objects.filter(kernel__submission=submission_id, kernel__problem=problem_id)
    # Not in SQL: a database without statistics would look for all runs of that hardware first.
    judged = (run for run in _judged(runs) if only.items() <= run.items())
    rows = Summary.objects.bulk_create(_rows(judged))
    found = {_setting_of(row): row for row in rows}
    for one in sorted(touched | set(found)):
        _update_standing(submission_id, problem_id, one, found.get(one))


def _update_standing(
    submission_id: int, problem_id: int, setting: Setting, row: Summary | None
) -> None:
    """Put one problem's part of a standing in place of what it was."""
    place = {"submission_id": submission_id, **dict(zip(SETTING, setting, strict=True))}
    own = Standing.objects.filter(**place)
    before = own.values("submission__k", "tallies", "by_category").first()
    old = unpack(before["tallies"]) if before else []
    kept = [tally for tally in old if tally.problem != problem_id]
    subject = _subjects(pk=problem_id).get(problem_id)
    new = tallies_of(subject, row.attempts) if row and subject else []
    if not kept + new:
        own.delete()
        return
    if before is None:
        k = Submission.objects.values_list("k", flat=True).get(pk=submission_id)
        Standing.objects.create(**place, **columns_of(new, k))
        return
    changed = {tally.category for tally in (*old, *new) if tally.problem == problem_id}
    others = {name: totals for name, totals in before["by_category"].items() if name not in changed}
    own.update(**columns_of(kept + new, before["submission__k"], others))


def _subjects(**wanted: Any) -> dict[int, Subject]:
    """Scored problems by number."""
    columns = ("number", "category", KT("payload__source"))
    found = Problem.objects.scored().filter(**wanted).order_by().values_list(*columns)
    return {
        number: Subject(number=number, category=category, source=source or "")
        for number, category, source in found
    }


def rebuild() -> int:
    """Make every row anew; returns how many there are."""
    with transaction.atomic():
        # A run that finishes meanwhile locks its submission too, and so waits.
        drawn = dict(Submission.objects.select_for_update().values_list("pk", "k"))
        Standing.objects.all().delete()
        Summary.objects.all().delete()
        subjects, count = _subjects(), 0
        by_submission = groupby(_rows(_judged(Run.objects.all())), lambda row: row.submission_id)
        for submission_id, group in by_submission:
            rows = list(group)
            count += len(Summary.objects.bulk_create(rows, batch_size=1000))
            Standing.objects.bulk_create(_standings(rows, subjects, drawn[submission_id]))
        return count


def _standings(
    rows: Iterable[Summary], subjects: Mapping[int, Subject], k: int
) -> Iterator[Standing]:
    """Of one submission."""
    groups: dict[Setting, list[Tally]] = {}
    for row in rows:
        if subject := subjects.get(row.problem_id):
            own = groups.setdefault(_setting_of(row), [])
            own += tallies_of(subject, row.attempts)
            submission_id = row.submission_id
    for setting, tallies in sorted(groups.items(), key=lambda pair: pair[0]):
        yield Standing(
            submission_id=submission_id,
            **dict(zip(SETTING, setting, strict=True)),
            **columns_of(tallies, k),
        )


def _setting_of(row: Summary) -> Setting:
    return tuple(getattr(row, name) for name in SETTING)


def _judged(runs: Any) -> Iterator[Judged]:
    found: Iterator[Judged] = runs.counted().order_by(*ORDER).values(*COLUMNS).iterator()
    return found


def _rows(runs: Iterable[Judged]) -> Iterator[Summary]:
    for place, group in groupby(runs, key=lambda run: tuple(run[name] for name in PLACE)):  # type: ignore[literal-required]
        last = {run["kernel__attempt"]: run for run in group}
        correct = [run for run in last.values() if run["verdict"] == "ok"]
        best = max(correct, key=_speedup, default=None)
        yield Summary(
            submission_id=place[0],
            problem_id=place[1],
            **dict(zip(SETTING, place[2:], strict=True)),
            made=len(last),
            correct=len(correct),
            best_speedup=best["speedup"] if best else None,
            best_run_id=best["id"] if best else None,
            attempts=[_entry(run) for run in last.values()],
        )


def _speedup(run: Judged) -> float:
    return run["speedup"] or 0.0


def _entry(run: Judged) -> dict[str, Any]:
    """A run that was too fast to be true keeps its verdict and loses its numbers."""
    is_correct = run["verdict"] == "ok"
    return {
        "attempt": run["kernel__attempt"],
        "run": str(run["id"]),
        "verdict": run["verdict"],
        "cause": run["cause"],
        "speedup": run["speedup"] if is_correct else None,
        "low": run["speedup_low"] if is_correct else None,
        "utilisation": run["utilisation"] if is_correct else None,
        "backend": run["kernel__backend"],
        "mechanisms": run["mechanisms"],
        "nccl": uses_nccl(run["flags"], run["mechanisms"]),
        "kernel": run["kernel__source_id"],
    }


def uses_nccl(flags: Iterable[str], mechanisms: Iterable[str]) -> bool:
    """Whether NCCL was named in the source or seen at work."""
    return "uses_nccl" in flags or "nccl" in mechanisms
