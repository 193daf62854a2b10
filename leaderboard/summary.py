"""The write-through summary that pages read: pure bookkeeping on stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, TypedDict
from uuid import UUID

from django.db import transaction

from leaderboard.models import Run, Submission, Summary
from leaderboard.models.runs import SETTING


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


def rewrite(submission_id: int, problem_id: int) -> None:
    """Bring the rows of one submission on one problem up to date, in the caller's transaction."""
    Summary.objects.filter(submission=submission_id, problem=problem_id).delete()
    runs = Run.objects.filter(kernel__submission=submission_id, kernel__problem=problem_id)
    Summary.objects.bulk_create(_rows(_judged(runs)))


def rebuild() -> int:
    """Make every row anew; returns how many there are."""
    with transaction.atomic():
        # A run that finishes meanwhile locks its submission too, and so waits.
        list(Submission.objects.select_for_update().values_list("pk", flat=True))
        Summary.objects.all().delete()
        return len(Summary.objects.bulk_create(_rows(_judged(Run.objects.all())), batch_size=1000))


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
