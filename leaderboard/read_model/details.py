"""Reads what few pages of a board need of its rows: cells, results, categories."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import orjson
from django.db.models import QuerySet

from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics.mechanisms import NCCL
from leaderboard.metrics.scores import Attempts
from leaderboard.metrics.tallies import Cell, KernelFilter, cell_of
from leaderboard.models import LeaderboardRow, Summary
from leaderboard.models.runs import SETTING
from leaderboard.read_model.kernel_filters import parts_of
from leaderboard.read_model.leaderboard_rows import cells_in


class MatrixMark(NamedTuple):
    """Holds as much of a Cell as a mark in the matrix shows."""

    problem: int
    best_speedup: float | None
    best_low: float | None
    mode: str | None


@dataclass(frozen=True, kw_only=True)
class LazyColumns:
    """Reads columns of the ranked rows `where` these columns have these values, one a submission,
    or of those of some `submissions`: a column is read of all of them when it is asked for of one.
    `known` are columns that were read already, by submission."""

    where: Mapping[str, object]
    narrow: KernelFilter
    known: dict[str, dict[int, str]]
    submissions: tuple[int, ...] = ()

    def alone(self, submissions: Iterable[int]) -> Self:
        return replace(self, submissions=tuple(submissions), known=dict(self.known))

    def of_all_kinds(self) -> Self:
        """Return the details with every kernel; the two share the columns that either reads."""
        return replace(self, narrow=self.narrow.of_all_kinds)

    def _read(self, submission: int, name: str) -> str:
        """Return a column; one query for all rows, unless it was asked for before."""
        if name not in self.known:
            self.known[name] = dict(self._rows.values_list("submission_id", name))
        return self.known[name][submission]

    def by_category(self, submission: int) -> JsonObject:
        return dict(orjson.loads(self._read(submission, "by_category")))

    def solved(self, submission: int) -> str:
        return self._read(submission, "solved")

    def cells(self, submission: int) -> tuple[Cell, ...]:
        if not self.narrow.is_by_problem:
            return self._narrowed.get(submission, ())
        every = cells_in(self._read(submission, "cells"))
        return tuple(cell for cell in every if self.narrow.covers(cell.problem, cell.category))

    def speeds(self, submission: int) -> Speeds:
        """Return the speedups of the best correct kernels: of `cells`, mostly without making
        these."""
        if not self.narrow.is_by_problem:
            return speeds_of(self.cells(submission))
        return _speeds_in(self._read(submission, "cells"), self.narrow)

    def marks(self, submission: int) -> tuple[MatrixMark, ...]:
        """Return what a matrix shows; also of problems that are not looked at."""
        if self.narrow.is_by_problem:
            return _marks_in(self._read(submission, "cells"))
        parts = parts_of(orjson.loads(self._read(submission, "outcomes")), self.narrow)
        return tuple(MatrixMark(part.problem, *part.best, part.told.mode) for part in parts)

    def results(self, submission: int) -> tuple[Attempts, ...]:
        parts = parts_of(orjson.loads(self._read(submission, "outcomes")), self.narrow)
        return tuple(part.results for part in parts)

    @property
    def _rows(self) -> QuerySet[LeaderboardRow]:
        own = LeaderboardRow.objects.ranked().filter(**self.where).order_by()
        return own.filter(submission__in=self.submissions) if self.submissions else own

    @functools.cached_property
    def _narrowed(self) -> dict[int, tuple[Cell, ...]]:
        """Return the cells that a filter on kernels leaves, by submission, from every attempt: a
        row does not say which kernel is the best of each kind."""
        own = self._rows
        setting = own.values(*SETTING).first()
        if setting is None:
            return {}
        whose = own.values("submission_id")
        rows = Summary.objects.filter(**setting, problem__scored=True, submission__in=whose)
        made: dict[int, list[Cell]] = {}
        columns = ("submission_id", "problem_id", "problem__category", "attempts")
        found = rows.order_by("problem_id").values_list(*columns)
        for submission, problem, category, attempts in found:
            if cell := cell_of(problem, category, attempts, self.narrow):
                made.setdefault(submission, []).append(cell)
        return {submission: tuple(cells) for submission, cells in made.items()}


class Speeds(NamedTuple):
    """Holds the speedups of timed kernels that call NCCL, and of those that do not."""

    calling: tuple[float, ...]
    moving: tuple[float, ...]


def speeds_of(cells: Iterable[Cell]) -> Speeds:
    timed = [one for one in cells if one.correct and one.best_speedup is not None]
    return Speeds(
        tuple(one.best_speedup or 0.0 for one in timed if NCCL in one.mechanisms),
        tuple(one.best_speedup or 0.0 for one in timed if NCCL not in one.mechanisms),
    )


# Those of a board, few of which change from one version of the data to the next.
@functools.lru_cache(maxsize=256)
def _speeds_in(cells: str, narrow: KernelFilter) -> Speeds:
    return speeds_of(one for one in cells_in(cells) if narrow.covers(one.problem, one.category))


# The rows that two parts of a matrix show, few of which change from one version of the data to the
# next.
@functools.lru_cache(maxsize=64)
def _marks_in(cells: str) -> tuple[MatrixMark, ...]:
    columns = orjson.loads(cells)
    return tuple(map(MatrixMark, *(columns[name] for name in MatrixMark._fields)))
