"""What a board need not read of its rows: their cells, their results, their categories."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import or_
from typing import Any, NamedTuple, Self

import orjson
from django.db.models import Q, QuerySet

from leaderboard.kit.memoised import digest, once
from leaderboard.kit.prepared import Given, ask, given
from leaderboard.metrics.scores import Attempts
from leaderboard.metrics.tallies import Cell, Narrow, cell_of, outcome_of
from leaderboard.models import Standing, Summary
from leaderboard.models.runs import SETTING
from leaderboard.read_model.cell_columns import (
    Columns,
    Packed,
    unpack_cells,
    unpack_results,
    unpack_some,
)
from leaderboard.read_model.kernel_filters import Part, parts_of
from leaderboard.read_model.leaderboard_rows import letters


class Marked(NamedTuple):
    """As much of a Cell as a mark in the matrix shows."""

    problem: int
    best_speedup: float | None
    best_low: float | None
    mode: str | None


# A text holds them as they are stored, for `marked`.
Marks = str | tuple[Marked, ...]
Read = dict[str, dict[int, Any]]


@dataclass(frozen=True, kw_only=True)
class Details:
    """Of the ranked standings `where` these columns have these values, one a submission, or of some
    of them: columns of all are read when one of them is asked for. `known` are columns that were
    read already, by submission."""

    where: Mapping[str, Any]
    narrow: Narrow
    known: Read
    submissions: tuple[int, ...] = ()

    def alone(self, submissions: Iterable[int]) -> Self:
        return replace(self, submissions=tuple(submissions), known=dict(self.known))

    def of_all_kinds(self) -> Self:
        """With every kernel; what one of the two reads both know."""
        return replace(self, narrow=self.narrow.of_all_kinds)

    def _read(self, submission: int, *names: str) -> list[Any]:
        """One query for all rows, unless it was asked before."""
        if missing := [name for name in names if name not in self.known]:
            some = {f"own{n}": number for n, number in enumerate(self.submissions)}
            shape = (tuple(self.where), tuple(some), tuple(missing))
            rows = ask(_columns, *shape, **self.where, **some)
            found = {row[0]: row[1:] for row in rows}
            for index, name in enumerate(missing):
                self.known[name] = {key: row[index] for key, row in found.items()}
        return [self.known[name][submission] for name in names]

    def by_category(self, submission: int) -> Mapping[str, Any]:
        (text,) = self._read(submission, "by_category")
        return dict(orjson.loads(text))

    def cells(self, submission: int) -> tuple[Cell, ...]:
        if not self.narrow.is_by_problem:
            return self._narrowed.get(submission, ())
        every = unpack_cells(*self._read(submission, "cells", "kernels"))
        return tuple(cell for cell in every if self.narrow.covers(cell.problem, cell.category))

    def marks(self, submission: int) -> Marks:
        if not self.narrow.is_by_problem:
            held = _marks_held(self.narrow, digest(self._packed(submission)))
            return once(held, lambda: tuple(map(mark_of, self._parts(submission))))
        (text,) = self._read(submission, "cells")
        return str(text)

    def solved(self, submission: int) -> str:
        if self.narrow.is_by_problem:
            (text,) = self._read(submission, "solved")
            return str(text)
        held = _solved_held(self.narrow, digest(self._packed(submission)))
        return once(held, lambda: self._solved_among(submission))

    def _solved_among(self, submission: int) -> str:
        parts = self._parts(submission)
        return letters({part.problem: len(part.speedups) for part in parts})

    def results(self, submission: int) -> tuple[Attempts, ...]:
        if self.narrow.is_by_problem:
            return results_of(self.narrow, *self._read(submission, "cells", "speedups"))
        return tuple(part.results for part in self._parts(submission))

    def _packed(self, submission: int) -> list[Any]:
        return self._read(submission, "cells", "outcomes", "speedups")

    def _parts(self, submission: int) -> Iterator[Part]:
        return parts_of(without_kernels(*self._packed(submission)), self.narrow)

    @functools.cached_property
    def _narrowed(self) -> dict[int, tuple[Cell, ...]]:
        """From every attempt: a standing does not say which kernel is the best of each kind."""
        standings = Standing.objects.ranked().filter(**self.where)
        if self.submissions:
            standings = standings.filter(submission__in=self.submissions)
        setting = standings.values(*SETTING).first()
        if setting is None:
            return {}
        rows = Summary.objects.filter(
            **setting, problem__scored=True, submission__in=standings.values("submission_id")
        )
        made: dict[int, list[Cell]] = {}
        columns = ("submission_id", "problem_id", "problem__category", "attempts")
        found = rows.order_by("problem_id").values_list(*columns)
        for submission, problem, category, attempts in found:
            if cell := cell_of(problem, category, attempts, self.narrow):
                made.setdefault(submission, []).append(cell)
        return {submission: tuple(cells) for submission, cells in made.items()}


# Of five filters on 200 submissions, and the rows that two parts of a matrix show.
@functools.lru_cache(maxsize=1024)
def _solved_held(*made_of: Hashable) -> list[str]:
    """Room for what a filter on kernels leaves of the problems solved."""
    return []


@functools.lru_cache(maxsize=64)
def _marks_held(*made_of: Hashable) -> list[tuple[Marked, ...]]:
    """Room for the marks that it leaves."""
    return []


def _columns(
    where: tuple[str, ...], some: tuple[str, ...], names: tuple[str, ...]
) -> QuerySet[Standing, tuple[Any, ...]]:
    rows = Standing.objects.ranked().filter(**given(where)).order_by()
    if some:
        rows = rows.filter(functools.reduce(or_, (Q(submission=Given(name)) for name in some)))
    return rows.values_list("submission_id", *names)


def marked(marks: Marks) -> Iterable[Marked]:
    return map(Marked, *unpack_some(marks, Marked._fields)) if isinstance(marks, str) else marks


def mark_of(part: Part) -> Marked:
    speedup, low = max(zip(part.speedups, part.lows, strict=True), default=(None, None))
    return Marked(part.problem, speedup, low, outcome_of(part.told).mode)


def without_kernels(cells: str, outcomes: str, speedups: bytes | memoryview) -> Columns:
    return Columns.unpack(Packed(cells, "[]", outcomes, speedups))


def results_of(narrow: Narrow, cells: str, speedups: bytes | memoryview) -> tuple[Attempts, ...]:
    every = unpack_results(cells, speedups)
    return tuple(one for one in every if narrow.covers(one.problem, one.category))
