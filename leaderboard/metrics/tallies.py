"""What boards know of one submission at one problem in one setting. Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from leaderboard.metrics import scores
from leaderboard.metrics.failures import FAILURE_MODES, failure_mode
from leaderboard.metrics.scores import Attempts, Counts

Row = Mapping[str, Any]


class Cell(NamedTuple):
    """A submission at a problem, as a matrix shows it.

    `made` and `correct` count attempts. From `verdict` on it tells of the fastest correct attempt
    or, where none is correct, of the one that came furthest.
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


class Outcome(NamedTuple):
    """How an attempt ended, and what filters tell kernels apart by."""

    mode: str | None
    backend: str
    mechanisms: tuple[str, ...]
    nccl: bool


@dataclass(frozen=True, kw_only=True)
class Narrow:
    """Which problems are looked at (all where `problems` is None), and which kernels count there.

    Others stay attempts that were made, and count as failed.
    """

    category: str = ""
    problems: frozenset[int] | None = None
    backend: str = ""
    mechanism: str = ""
    nccl_free: bool = False

    @property
    def is_by_problem(self) -> bool:
        """Whether every kernel of a problem counts that is looked at."""
        return not (self.backend or self.mechanism or self.nccl_free)

    @property
    def of_all_kinds(self) -> Narrow:
        """The same problems, at which every kernel counts."""
        return Narrow(category=self.category, problems=self.problems)

    @property
    def is_by_category(self) -> bool:
        """Whether it asks for nothing but a category, or for all."""
        return self.is_by_problem and self.problems is None

    def covers(self, problem: int, category: str) -> bool:
        is_asked = self.problems is None or problem in self.problems
        return is_asked and self.category in ("", category)

    def admits(self, kind: Outcome) -> bool:
        return (
            self.backend in ("", kind.backend)
            and (not self.mechanism or self.mechanism in kind.mechanisms)
            and not (self.nccl_free and kind.nccl)
        )


EVERYTHING = Narrow()


class Tally(NamedTuple):
    """`utilisations` are of the correct attempts; `modes` counts all by FAILURE_MODES."""

    cell: Cell
    counts: Counts
    results: Attempts
    utilisations: tuple[float | None, ...]
    outcomes: tuple[str, ...]
    modes: tuple[int, ...]


def tally_of(problem: int, category: str, attempts: Sequence[Row]) -> Tally:
    """Of a Summary's `attempts`."""
    correct = [row for row in attempts if row["speedup"] is not None]
    results = Attempts(
        problem=problem,
        category=category,
        made=len(attempts),
        speedups=tuple(row["speedup"] for row in correct),
        lows=tuple(row["low"] for row in correct),
    )
    return Tally(
        cell=_cell(problem, category, attempts, attempts),
        counts=scores.counts(results),
        results=results,
        utilisations=tuple(row["utilisation"] for row in correct),
        outcomes=tuple(map(outcome_text, attempts)),
        modes=modes_of(attempts),
    )


def modes_of(attempts: Iterable[Row]) -> tuple[int, ...]:
    """How many attempts ended in each of FAILURE_MODES."""
    counts = Counter(map(_mode, attempts))
    return tuple(counts[mode] for mode in FAILURE_MODES)


def cell_of(
    problem: int, category: str, attempts: Sequence[Row], narrow: Narrow = EVERYTHING
) -> Cell | None:
    """None where no kernel counts."""
    if not narrow.covers(problem, category):
        return None
    own = [row for row in attempts if narrow.admits(outcome_of(outcome_text(row)))]
    return _cell(problem, category, attempts, own) if own else None


def _cell(problem: int, category: str, every: Sequence[Row], own: Sequence[Row]) -> Cell:
    told = max(own, key=_how_far)
    return Cell(
        problem=problem,
        category=category,
        made=len(every),
        correct=sum(row["speedup"] is not None for row in own),
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


def _how_far(row: Row) -> tuple[float, int]:
    return (row["speedup"] or 0.0, distance(_mode(row)))


def distance(mode: str | None) -> int:
    """How far an attempt came; a verdict without a mode says least."""
    return FAILURE_MODES.index(mode) if mode else -1


def _mode(row: Row) -> str | None:
    return failure_mode(row["verdict"], row["cause"])


def outcome_text(row: Row) -> str:
    """An Outcome in one word of a text, which is quickly compared."""
    nccl = "nccl" if row["nccl"] else ""
    return "|".join((_mode(row) or "", row["backend"], " ".join(row["mechanisms"]), nccl))


@functools.lru_cache(maxsize=4096)
def outcome_of(text: str) -> Outcome:
    mode, backend, mechanisms, nccl = text.split("|")
    return Outcome(mode or None, backend, tuple(mechanisms.split()), bool(nccl))
