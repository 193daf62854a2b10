"""Counts the attempts of one submission at one problem in one setting, as boards do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics.failures import CORRECT, FAILURE_MODES, failure_mode

# As a Summary lists it: see metrics/attempts.py.
AttemptRow = JsonObject


class Cell(NamedTuple):
    """Holds a submission at a problem, as a matrix shows it.

    `made` and `correct` count attempts. From `verdict` on it describes the fastest correct attempt
    or, where none is correct, the one that came furthest.
    """

    problem: int
    category: str
    made: int
    correct: int
    best_speedup: float | None
    best_low: float | None
    verdict: str
    mode: str | None
    kernel: str
    run: str
    utilisation: float | None
    backend: str
    mechanisms: tuple[str, ...]
    nccl: bool


class AttemptOutcome(NamedTuple):
    """Holds how an attempt ended, and what filters distinguish kernels by."""

    mode: str | None
    backend: str
    mechanisms: tuple[str, ...]
    nccl: bool


@dataclass(frozen=True, kw_only=True)
class KernelFilter:
    """Says which problems are looked at (all where `problems` is None), and which kernels count
    there.

    Others stay attempts that were made, and count as failed.
    """

    category: str = ""
    problems: frozenset[int] | None = None
    backend: str = ""
    mechanism: str = ""
    nccl_free: bool = False

    @property
    def is_by_problem(self) -> bool:
        """Return whether every kernel counts of a problem that is looked at."""
        return not (self.backend or self.mechanism or self.nccl_free)

    @property
    def of_all_kinds(self) -> KernelFilter:
        """Return the same problems, at which every kernel counts."""
        return KernelFilter(category=self.category, problems=self.problems)

    @property
    def is_by_category(self) -> bool:
        """Return whether it asks for nothing but a category, or for all."""
        return self.is_by_problem and self.problems is None

    def covers(self, problem: int, category: str) -> bool:
        is_asked = self.problems is None or problem in self.problems
        return is_asked and self.category in ("", category)

    def admits(self, kind: AttemptOutcome) -> bool:
        return (
            self.backend in ("", kind.backend)
            and (not self.mechanism or self.mechanism in kind.mechanisms)
            and not (self.nccl_free and kind.nccl)
        )


EVERYTHING = KernelFilter()


def modes_of(attempts: Iterable[AttemptRow]) -> dict[str, int]:
    """Return how many attempts of a Summary ended in each failure mode, those that occur."""
    return in_order(Counter(map(_mode, attempts)))


def in_order(modes: Mapping[Any, int]) -> dict[str, int]:
    """Return counts by failure mode in the order of FAILURE_MODES, without those of zero."""
    return {mode: n for mode in FAILURE_MODES if (n := modes.get(mode))}


def cell_of(
    problem: int, category: str, attempts: Sequence[AttemptRow], narrow: KernelFilter = EVERYTHING
) -> Cell | None:
    """Return what a matrix shows; None where no kernel counts."""
    if not narrow.covers(problem, category):
        return None
    own = attempts
    if not narrow.is_by_problem:
        own = [row for row in attempts if narrow.admits(outcome_of(row))]
    if not own:
        return None
    correct = [row for row in own if _mode(row) == CORRECT]
    told = max(correct or own, key=lambda row: (_how_far(row), row["speedup"] or 0.0))
    return Cell(
        problem=problem,
        category=category,
        made=len(attempts),
        correct=len(correct),
        best_speedup=told["speedup"],
        best_low=told["low"],
        verdict=told["verdict"],
        mode=_mode(told),
        kernel=told["kernel"],
        run=told["run"],
        utilisation=told["utilisation"],
        backend=told["backend"],
        mechanisms=tuple(told["mechanisms"]),
        nccl=told["nccl"],
    )


def _how_far(row: AttemptRow) -> int:
    return distance(_mode(row))


def distance(mode: str | None) -> int:
    """Return how far an attempt came; a verdict without a mode says least."""
    return FAILURE_MODES.index(mode) if mode else -1


def _mode(row: AttemptRow) -> str | None:
    return failure_mode(row["verdict"], row["cause"])


def outcome_of(row: AttemptRow) -> AttemptOutcome:
    return AttemptOutcome(_mode(row), row["backend"], tuple(row["mechanisms"]), row["nccl"])
