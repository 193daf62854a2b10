"""The cells of a standing and the speedups behind them, column by column. Pure.

Pages without filters on kernels read these: a twentieth of the work of unpacking all tallies.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from leaderboard.scores import Attempts
from leaderboard.tallies import Cell, Tally

MECHANISMS = Cell._fields.index("mechanisms")
COLUMNS = {name: index for index, name in enumerate(Cell._fields)}
Modes = Sequence[int]


def modes_by_problem(tallies: Iterable[Tally]) -> dict[int, Modes]:
    """How many attempts ended in each failure mode."""
    groups: dict[int, list[Modes]] = {}
    for tally in tallies:
        groups.setdefault(tally.problem, []).append(tally.modes)
    return {number: [*map(sum, zip(*own, strict=True))] for number, own in groups.items()}


def pack_cells(cells: Sequence[Cell], modes: Mapping[int, Modes]) -> str:
    """Modes are the column after those of the cells."""
    counted = [modes[cell.problem] for cell in cells]
    return json.dumps([*zip(*cells, strict=True), counted], separators=(",", ":"))


def unpack_cells(text: str) -> tuple[Cell, ...]:
    """By problem."""
    return tuple(cell for cell, _ in cells_with_modes(text))


def cells_with_modes(text: str) -> Iterator[tuple[Cell, Modes]]:
    columns = json.loads(text)
    columns[MECHANISMS] = map(tuple, columns[MECHANISMS])
    *cells, modes = columns
    return zip(map(Cell._make, zip(*cells, strict=True)), modes, strict=True)


def pack_speedups(results: Iterable[Attempts]) -> bytes:
    """Of each problem the speedups of correct attempts, then the lower ends of their intervals."""
    numbers = [number for one in results for number in (*one.speedups, *one.lows)]
    return struct.pack(f"<{len(numbers)}d", *numbers)


def unpack_results(text: str, packed: bytes | memoryview) -> tuple[Attempts, ...]:
    """Of what `pack_cells` and `pack_speedups` made of the same problems in the same order."""
    columns = json.loads(text)
    numbers = struct.unpack(f"<{len(packed) // 8}d", packed)
    names = ("problem", "category", "made", "correct")
    found, start = [], 0
    for problem, category, made, n in zip(*(columns[COLUMNS[one]] for one in names), strict=True):
        middle, end = start + n, start + 2 * n
        found.append(
            Attempts(
                problem=problem,
                category=category,
                made=made,
                speedups=numbers[start:middle],
                lows=numbers[middle:end],
            )
        )
        start = end
    return tuple(found)
