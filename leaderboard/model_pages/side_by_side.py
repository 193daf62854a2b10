"""Compares two to five submissions in one setting. Pure but for addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.metrics import scores
from leaderboard.metrics.verdicts import state, verdict_words
from leaderboard.read_model.boards import Cell
from leaderboard.read_model.columns import RankedRow

LETTERS = "abcde"
Bounds = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, kw_only=True)
class ComparedProblem:
    """Describes a problem, as much of it as a comparison shows."""

    number: int
    title: str
    url: str
    category: str


@dataclass(frozen=True, kw_only=True)
class ComparedOutcome:
    """Holds the result of one submission at a problem: of its fastest correct kernel, or the
    failure."""

    verdict: str
    run: str
    speedup: float | None
    low: float | None = None
    high: float | None = None

    @property
    def state(self) -> str:
        return state(self.verdict)

    @property
    def words(self) -> str:
        return verdict_words(self.verdict, is_timed=self.speedup is not None)


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Holds the speedup of the first over that of another; apart where their intervals do not
    overlap."""

    value: float
    is_apart: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Compares the submissions at one problem; `ratios` are to every submission but the first."""

    problem: ComparedProblem
    outcomes: tuple[ComparedOutcome | None, ...]
    ratios: tuple[Ratio | None, ...]

    @property
    def solved(self) -> tuple[bool, ...]:
        return tuple(one is not None and one.verdict == "ok" for one in self.outcomes)


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Counts the problems solved by all, by none, and by only one of them."""

    problems: int
    every: int
    none: int
    only: tuple[int, ...]


def lines(
    problems: Iterable[ComparedProblem], sides: Sequence[RankedRow], bounds: Bounds
) -> list[Comparison]:
    """Return a comparison for each problem; `bounds` are the intervals of runs that solved
    something, by the id of the run."""
    found = [{cell.problem: cell for cell in side.entry.cells} for side in sides]
    return [
        _line(problem, [own.get(problem.number) for own in found], bounds) for problem in problems
    ]


def _line(problem: ComparedProblem, found: Sequence[Cell | None], bounds: Bounds) -> Comparison:
    outcomes = tuple(_outcome(cell, bounds) if cell else None for cell in found)
    first, *others = outcomes
    ratios = tuple(_ratio(first, other) for other in others)
    return Comparison(problem=problem, outcomes=outcomes, ratios=ratios)


def _outcome(cell: Cell, bounds: Bounds) -> ComparedOutcome:
    low, high = bounds.get(cell.run, (None, None)) if cell.correct else (None, None)
    return ComparedOutcome(
        verdict=cell.verdict, run=cell.run, speedup=cell.best_speedup, low=low, high=high
    )


def _ratio(first: ComparedOutcome | None, other: ComparedOutcome | None) -> Ratio | None:
    if not (first and other and first.speedup and other.speedup):
        return None
    return Ratio(value=first.speedup / other.speedup, is_apart=are_apart(first, other))


def are_apart(first: ComparedOutcome, other: ComparedOutcome) -> bool:
    """Return whether two speedups are distinguishable; without an interval they are not."""
    if None in (first.low, first.high, other.low, other.high):
        return False
    return first.low > other.high or other.low > first.high  # type: ignore[operator]


def solving_runs(sides: Iterable[RankedRow]) -> list[str]:
    return [cell.run for side in sides for cell in side.entry.cells if cell.correct]


def overlap(found: Sequence[Comparison], sides: int) -> Overlap:
    solved = [line.solved for line in found]
    only = tuple(sum(row[n] and sum(row) == 1 for row in solved) for n in range(sides))
    return Overlap(
        problems=len(solved),
        every=sum(all(row) for row in solved),
        none=sum(not any(row) for row in solved),
        only=only,
    )


def speedups_in_common(found: Iterable[Comparison], sides: int) -> tuple[float | None, ...]:
    """Return each side's geometric mean over the problems that all of them solved; None without
    any."""
    rows = [line.outcomes for line in found if all(line.solved)]
    return tuple(scores.geometric_mean(_speedups(rows, n)) for n in range(sides))


def _speedups(rows: Iterable[Sequence[ComparedOutcome | None]], side: int) -> Iterator[float]:
    for row in rows:
        outcome = row[side]
        if outcome is not None and outcome.speedup is not None:
            yield outcome.speedup


def by_category(found: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    groups: dict[str, list[Comparison]] = {}
    for line in found:
        groups.setdefault(line.problem.category, []).append(line)
    return groups
