"""Reads an attempt step by step: its kernels, what each took to make, and how each was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.kit.json_types import JsonDict
from leaderboard.models import Kernel, Run, Transcript
from leaderboard.models.generation_usage import RISING
from leaderboard.models.runs import SETTING

MOST_RUNS = 5_000
MADE = (*RISING, "ended")
RUN = ("id", "status", "verdict", "cause", "speedup", "speedup_low", "speedup_high")


@dataclass(frozen=True, kw_only=True)
class StepMade:
    """Holds a step of an attempt. `older_task` is its kernel's; `made` has what the attempt had
    used by then by MADE, each None where nobody tells; `languages` are those found in the source,
    none where that is not held; `runs` come newest first, each by RUN and SETTING."""

    step: int
    backend: str
    languages: tuple[str, ...]
    kernel: str
    older_task: str
    made: JsonDict
    runs: Sequence[JsonDict]

    @property
    def record(self) -> JsonDict:
        runs = [{**run, "id": str(run["id"])} for run in self.runs]
        told = {**self.made, "ended": self.made["ended"] or None}
        own = {**vars(self), "older_task": self.older_task or None, "made": told, "runs": runs}
        return {**own, "languages": list(self.languages)}


def steps_of(submission: int, problem: int, attempt: int) -> list[StepMade]:
    """Return the steps in their order, in two queries; none where there is no such attempt."""
    # By its number, of which Django sees when it is too great for a database.
    whose = {"submission": submission, "problem__number": problem, "attempt": attempt}
    own = Kernel.objects.filter(**whose)
    made = [f"making__{name}" for name in MADE]
    names = ("pk", "step", "backend", "source_id", "older_task", "source__found__names", *made)
    rows = list(own.order_by("step").values_list(*names))
    runs = _runs_of([row[0] for row in rows]) if rows else {}
    return [
        StepMade(
            step=step,
            backend=backend,
            languages=tuple((languages or "").split()),
            kernel=digest,
            older_task=older_task,
            made=dict(zip(MADE, told, strict=True)),
            runs=runs.get(pk, ()),
        )
        for pk, step, backend, digest, older_task, languages, *told in rows
    ]


def _runs_of(kernels: Sequence[int]) -> dict[int, list[JsonDict]]:
    own = Run.objects.filter(kernel__in=kernels)
    rows = own.order_by("-created_at", "-id").values("kernel_id", *RUN, *SETTING)[:MOST_RUNS]
    found: dict[int, list[JsonDict]] = {}
    for row in rows:
        found.setdefault(row.pop("kernel_id"), []).append(row)
    return found


def transcript_of(submission: int, problem: int, attempt: int) -> Transcript | None:
    whose: dict[str, Any] = {"submission": submission, "problem": problem, "attempt": attempt}
    return Transcript.objects.filter(**whose).first()
