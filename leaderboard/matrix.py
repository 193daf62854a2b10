"""Submissions by problems: what became of each pair, as one mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString

from leaderboard import cells
from leaderboard.boards import Cell, Entry
from leaderboard.failures import FAILURE_MODES
from leaderboard.marks import Mark, Target, marked_cell, unmarked_cell

TWICE = Mark(code="z", glyph="⇑", words="right, at least twice as fast")
FASTER = Mark(code="y", glyph="↑", words="right and faster")
UNSURE = Mark(code="x", glyph="≈", words="right, not surely faster")
HALF = Mark(code="w", glyph="⇓", words="right, less than half as fast")
FAILURES: Mapping[str, Mark] = {
    mode: Mark(code=code, glyph=code.upper(), words=mode)
    for mode, code in zip(FAILURE_MODES, "csnrmd", strict=False)
}
LEGEND: tuple[Mark, ...] = (TWICE, FASTER, UNSURE, HALF, *FAILURES.values())
# With few columns there is room for the speedup itself.
FEW_COLUMNS = 24
CELL_COLUMNS = (
    *("submission", "model", "harness", "problem", "verdict", "mode"),
    *("made", "correct", "speedup", "kernel", "run"),
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A problem. One with `edge` begins a category; `path` and `label` are its number, and that
    with its title, for cells."""

    number: int
    title: str
    url: str
    path: SafeString
    label: SafeString
    edge: bool


@dataclass(frozen=True, kw_only=True)
class Group:
    """The problems of a category; `url` shows them alone."""

    title: str
    url: str
    columns: tuple[Column, ...]

    @property
    def short(self) -> str:
        return self.title.removesuffix(" Parallel").removesuffix(" Primitive")

    @property
    def is_slim(self) -> bool:
        return len(self.columns) < 4


def column(number: int, slug: str, title: str, *, edge: bool) -> Column:
    return Column(
        number=number,
        title=title,
        url=reverse("problem", args=[number, slug]),
        path=escape(number),
        label=escape(f"{number}. {title}"),
        edge=edge,
    )


def mark_of(cell: Cell) -> Mark | None:
    """Faster means what it means for fast_1: with the whole interval."""
    if cell.best_speedup is None or cell.best_low is None:
        return FAILURES.get(cell.mode or "")
    if cell.best_low > 1.0:
        return TWICE if cell.best_speedup >= 2.0 else FASTER
    return UNSURE if cell.best_speedup >= 0.5 else HALF


def row_cells(
    submission: int | None, own: Iterable[Cell], columns: Sequence[Column], query: str
) -> SafeString:
    """`query` is what leads to the same attempt of the same setting."""
    found = {cell.problem: cell for cell in own}
    start = escape(reverse("attempt", args=[submission, 0]).removesuffix("0"))
    end = escape(f"?{query}" if query else "")
    in_digits = len(columns) <= FEW_COLUMNS
    made = []
    for one in columns:
        cell = found.get(one.number)
        mark = mark_of(cell) if cell else None
        if cell is None or mark is None:
            made.append(unmarked_cell(edge=one.edge))
            continue
        to = Target(href=SafeString(f"{start}{one.path}{end}"), label=one.label, edge=one.edge)
        made.append(marked_cell(mark, to, cell.best_speedup, in_digits=in_digits))
    return cells.joined(made)


def solved_cells(entries: Iterable[Entry], columns: Sequence[Column]) -> SafeString:
    """How many of the rows solved each problem."""
    counts: dict[int, int] = {}
    for entry in entries:
        for cell in entry.cells:
            counts[cell.problem] = counts.get(cell.problem, 0) + (cell.correct > 0)
    return cells.joined(cells.count_cell(counts.get(one.number, 0)) for one in columns)


def cell_record(entry: Entry, cell: Cell) -> dict[str, object]:
    """A row of the CSV twin; keys are CELL_COLUMNS."""
    return {
        "submission": entry.submission,
        "model": entry.model,
        "harness": entry.harness,
        "problem": cell.problem,
        "verdict": cell.verdict,
        "mode": cell.mode,
        "made": cell.made,
        "correct": cell.correct,
        "speedup": cell.best_speedup,
        "kernel": cell.kernel,
        "run": cell.run,
    }
