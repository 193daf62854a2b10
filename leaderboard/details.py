"""What a board need not read of its rows: their cells, their results, their categories."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import orjson
from django.db.models import TextField
from django.db.models.functions import Cast

from leaderboard.cell_columns import (
    Columns,
    unpack_cells,
    unpack_outcomes,
    unpack_results,
    unpack_some,
)
from leaderboard.models import Summary
from leaderboard.models.runs import SETTING
from leaderboard.models.summaries import StandingQuerySet
from leaderboard.narrowing import Part, parts_of
from leaderboard.scores import Attempts
from leaderboard.standings import letters
from leaderboard.tallies import Cell, Narrow, cell_of, outcome_of


class Marked(NamedTuple):
    """As much of a Cell as a mark in the matrix shows."""

    problem: int
    best_speedup: float | None
    best_low: float | None
    mode: str | None


# Seldom looked into, so it is not decoded for every row.
BY_CATEGORY = Cast("by_category", TextField())
Read = dict[str, dict[int, Any]]


class Details:
    """Of these rows, one a submission: columns of all are read when one of them is asked for.
    `known` are columns that were read already, by submission."""

    def __init__(
        self, rows: Callable[[], StandingQuerySet], narrow: Narrow, known: Read | None = None
    ) -> None:
        self._rows, self._narrow = rows, narrow
        self._known = {} if known is None else known

    def alone(self, submissions: Iterable[int]) -> Self:
        own = list(submissions)
        rows = self._rows
        return type(self)(
            lambda: rows().filter(submission__in=own), self._narrow, dict(self._known)
        )

    def _read(self, submission: int, *names: str) -> list[Any]:
        """One query for all rows, unless it was asked before."""
        if missing := [name for name in names if name not in self._known]:
            rows = self._rows().annotate(text=BY_CATEGORY).order_by()
            found = {row[0]: row[1:] for row in rows.values_list("submission_id", *missing)}
            for index, name in enumerate(missing):
                self._known[name] = {key: row[index] for key, row in found.items()}
        return [self._known[name][submission] for name in names]

    def by_category(self, submission: int) -> Mapping[str, Any]:
        (text,) = self._read(submission, "text")
        return dict(orjson.loads(text))

    def cells(self, submission: int) -> tuple[Cell, ...]:
        if not self._narrow.is_by_problem:
            return self._narrowed.get(submission, ())
        every = unpack_cells(*self._read(submission, "cells", "kernels"))
        return tuple(cell for cell in every if self._narrow.covers(cell.problem, cell.category))

    def marks(self, submission: int) -> list[Marked]:
        if not self._narrow.is_by_problem:
            return list(map(mark_of, self._parts(submission)))
        (text,) = self._read(submission, "cells")
        columns = unpack_some(text, Marked._fields)
        return list(map(Marked._make, zip(*columns, strict=True)))

    def solved(self, submission: int) -> str:
        if self._narrow.is_by_problem:
            (text,) = self._read(submission, "solved")
            return str(text)
        parts = self._parts(submission)
        return letters({part.results.problem: part.results.correct for part in parts})

    def results(self, submission: int) -> tuple[Attempts, ...]:
        if self._narrow.is_by_problem:
            return results_of(self._narrow, *self._read(submission, "cells", "speedups"))
        return tuple(part.results for part in self._parts(submission))

    def _parts(self, submission: int) -> Iterator[Part]:
        packed = self._read(submission, "cells", "outcomes", "speedups")
        return parts_of(without_kernels(*packed), self._narrow)

    @functools.cached_property
    def _narrowed(self) -> dict[int, tuple[Cell, ...]]:
        """From every attempt: a standing does not say which kernel is the best of each kind."""
        standings = self._rows()
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
            if cell := cell_of(problem, category, attempts, self._narrow):
                made.setdefault(submission, []).append(cell)
        return {submission: tuple(cells) for submission, cells in made.items()}


def mark_of(part: Part) -> Marked:
    found = part.results
    speedup, low = max(zip(found.speedups, found.lows, strict=True), default=(None, None))
    return Marked(found.problem, speedup, low, outcome_of(part.told).mode)


def without_kernels(cells: str, outcomes: str, speedups: bytes | memoryview) -> Columns:
    rates = array("d")
    rates.frombytes(speedups)
    return Columns(orjson.loads(cells), [], unpack_outcomes(outcomes), rates)


def results_of(narrow: Narrow, cells: str, speedups: bytes | memoryview) -> tuple[Attempts, ...]:
    every = unpack_results(cells, speedups)
    return tuple(one for one in every if narrow.covers(one.problem, one.category))
