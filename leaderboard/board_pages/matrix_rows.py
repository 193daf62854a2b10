"""Renders rows of the matrix: each problem of a submission as one mark."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.kit.links import url
from leaderboard.metrics.failures import CORRECT, ENDINGS
from leaderboard.read_model.boards import BoardRow, Cell
from leaderboard.read_model.details import MatrixMark


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Describes a sign of a closed set: the class that colours it, its glyph and its meaning in
    words."""

    code: str
    glyph: str
    words: str


TWICE = Mark(code="z", glyph="⇑", words="right, at least twice as fast")
FASTER = Mark(code="y", glyph="↑", words="right and faster")
UNSURE = Mark(code="x", glyph="≈", words="right, not surely faster")
HALF = Mark(code="w", glyph="⇓", words="right, less than half as fast")
CHECKED = Mark(code="v", glyph="✓", words="right, not timed")
FAILURES: Mapping[str, Mark] = {
    ending.mode: Mark(code=ending.letter, glyph=ending.letter.upper(), words=ending.mode)
    for ending in ENDINGS
    if ending.mode != CORRECT
}


def legend(*, is_timed: bool) -> tuple[Mark, ...]:
    """Return the marks that a matrix may have."""
    right = (TWICE, FASTER, UNSURE, HALF) if is_timed else (CHECKED,)
    return (*right, *FAILURES.values())


# With few columns there is room for the speedup itself.
FEW_COLUMNS = 24
# Of problems, by category; that of one that is not scored with a minus.
Numbers = tuple[tuple[int, ...], ...]
CELL_COLUMNS = (
    *("submission", "model", "harness", "unfiltered", "problem", "verdict", "mode"),
    *("made", "correct", "speedup", "kernel", "run"),
)


class DrawnMark(NamedTuple):
    """Holds a cell as drawn; an `edge` begins a category, what it `says` is its title."""

    code: str
    edge: bool
    number: int
    says: str
    glyph: str


class ProblemColumn(NamedTuple):
    number: int
    title: str
    url: str
    scored: bool

    @property
    def signed(self) -> int:
        return self.number if self.scored else -self.number


class Group(NamedTuple):
    """Holds the problems of a category; `url` shows them alone."""

    title: str
    url: str
    columns: tuple[ProblemColumn, ...]

    @property
    def short(self) -> str:
        return self.title.removesuffix(" Parallel").removesuffix(" Primitive")

    @property
    def is_slim(self) -> bool:
        return len(self.columns) < 4


def mark_of(cell: MatrixMark) -> Mark | None:
    """Return the mark of a cell, None where it has none; faster means the same as for fast_1: with
    the whole interval."""
    if cell.best_speedup is None or cell.best_low is None:
        return CHECKED if cell.mode == CORRECT else FAILURES.get(cell.mode or "")
    if cell.best_low > 1.0:
        return TWICE if cell.best_speedup >= 2.0 else FASTER
    return UNSURE if cell.best_speedup >= 0.5 else HALF


# The rows that two parts of a matrix show, few of which change from one version of the data to the
# next.
@functools.lru_cache(maxsize=64)
def row_cells(
    submission: int, marks: tuple[MatrixMark, ...], groups: Numbers, query: str
) -> SafeString:
    """Return the cells of a row. `query` leads to the same attempt of the same setting."""
    found = {cell.problem: cell for cell in marks}
    in_digits = sum(map(len, groups)) <= FEW_COLUMNS
    drawn = [
        _drawn(found.get(number), number, edge=number == group[0], in_digits=in_digits)
        for group in groups
        for number in group
    ]
    start = url("attempt", submission, 0).removesuffix("0")
    return cells.draw("marks", drawn, start, f"?{query}" if query else "")


def _drawn(cell: MatrixMark | None, number: int, *, edge: bool, in_digits: bool) -> DrawnMark:
    """Describe a cell for the macro `marks`; it says nothing where nothing was judged."""
    mark = mark_of(cell) if cell else None
    if cell is None or mark is None:
        return DrawnMark("o", edge, number, "", "·" if number > 0 else "–")
    says, glyph = mark.words, mark.glyph
    if cell.best_speedup is not None:
        says = cells.ratio_text(cell.best_speedup)
        glyph = says.removesuffix("×") if in_digits else glyph
    return DrawnMark(mark.code, edge, number, says, glyph)


def solved_cells(entries: Iterable[BoardRow], columns: Sequence[ProblemColumn]) -> SafeString:
    """Return how many of the rows solved each problem; baselines are not counted."""
    found = [entry.solved for entry in entries if not entry.baseline]
    wide = 1 + max((column.number for column in columns), default=0)
    letters = "".join(own.ljust(wide)[:wide] for own in found)
    solved = (letters[one.number :: wide].count("1") if one.scored else None for one in columns)
    return cells.joined(map(cells.count_cell, solved))


class RowHead(NamedTuple):
    submission: int
    model: str
    how: str
    url: str
    baseline: bool
    unfiltered: bool
    correct: int
    withheld: bool


def cell_record(entry: BoardRow, cell: Cell) -> dict[str, object]:
    """Return a row of the CSV twin; keys are CELL_COLUMNS."""
    return {
        "submission": entry.submission,
        "model": entry.model,
        "harness": entry.harness,
        "unfiltered": entry.unfiltered,
        "problem": cell.problem,
        "verdict": cell.verdict,
        "mode": cell.mode,
        "made": cell.made,
        "correct": cell.correct,
        "speedup": cell.best_speedup,
        "kernel": cell.kernel,
        "run": cell.run,
    }
