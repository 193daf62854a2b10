"""Follows the attempts of one submission step by step, and counts how they end. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from leaderboard.metrics.failures import mode_of
from leaderboard.model_pages.submission_kernels import JudgedKernel, Step, attempts_of


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Holds the best speedup of an agentic attempt up to each step, None before the first right
    kernel."""

    name: str
    best: tuple[float | None, ...]


def progress_of(kernels: Iterable[JudgedKernel]) -> list[Progress]:
    """Return every attempt with more than one step; one that ended early holds its best to the
    end."""
    groups = {place: s for place, s in attempts_of(kernels).items() if len(s) > 1}
    last = max((steps[-1].step for steps in groups.values()), default=0)
    made = []
    for (number, attempt), steps in groups.items():
        by_step = {judged.step: judged.right_speedup for judged in steps}
        name = f"{number}. {steps[0].title}" + (f", attempt {attempt}" if attempt > 1 else "")
        best: list[float | None] = []
        for step in range(1, last + 1):
            known = [s for s in (by_step.get(step), best[-1] if best else None) if s is not None]
            best.append(max(known, default=None))
        made.append(Progress(name=name, best=tuple(best)))
    return made


def typical(progress: Sequence[Progress]) -> tuple[list[int], list[float | None]]:
    """Return by step how many attempts have a correct kernel, and the median of their best
    speedups."""
    steps = list(zip(*(one.best for one in progress), strict=True))
    known = [[speedup for speedup in step if speedup is not None] for step in steps]
    return [len(found) for found in known], [median(found) if found else None for found in known]


def modes_by_category(kernels: Iterable[JudgedKernel]) -> dict[str, Mapping[str, int]]:
    """Count how attempts ended, by the category of their problem."""
    groups: dict[str, Counter[str]] = {}
    for judged in kernels:
        mode = mode_of(judged.verdict or "", judged.cause, judged.evidence)
        if mode and judged.counts:
            groups.setdefault(judged.category, Counter())[mode] += 1
    return dict(groups)


class StepShare(NamedTuple):
    """Holds which share of the scored problems one attempt solves, and solves surely faster than
    the reference, had it been stopped after a step."""

    right: float
    fast: float


def shares_by_step(kernels: Iterable[Step], scored: int) -> list[StepShare]:
    """Return a share for each step up to the last one of any attempt; none where nothing has
    several steps. Of kernels without times `fast` is 0."""
    attempts = attempts_of(one for one in kernels if one.scored)
    last = max((steps[-1].step for steps in attempts.values()), default=0)
    made = Counter(problem for problem, _ in attempts)
    if last == 1 or not scored:
        return []
    right, fast = [0.0] * last, [0.0] * last
    for (problem, _), steps in attempts.items():
        for at, one in enumerate(_stopped(steps, last)):
            if one and one.counts and one.verdict == "ok":
                part = 1 / made[problem] / scored
                right[at] += part
                low = one.speedup_low if isinstance(one, JudgedKernel) else None
                fast[at] += part if (low or 0.0) > 1.0 else 0.0
    return list(map(StepShare._make, zip(right, fast, strict=True)))


def _stopped(steps: Sequence[Step], last: int) -> Iterator[Step | None]:
    """Yield what there was of an attempt after each step; None before its first."""
    by_step = {one.step: one for one in steps}
    newest: Step | None = None
    for step in range(1, last + 1):
        newest = by_step.get(step, newest)
        yield newest
