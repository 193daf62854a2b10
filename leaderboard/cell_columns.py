"""The cells of a standing and the speedups behind them, column by column. Pure.

Pages without filters on kernels read these: a twentieth of the work of unpacking all tallies.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence

from leaderboard.scores import Attempts
from leaderboard.tallies import Cell, Tally, cells_of, modes_in, results_of

MECHANISMS = Cell._fields.index("mechanisms")
COLUMNS = {name: index for index, name in enumerate(Cell._fields)}
Modes = Sequence[int]


def pack_cells(tallies: Sequence[Tally]) -> str:
    """The same text for the same tallies, in whatever order problems come. After the columns of
    cells stands how many attempts ended in each failure mode."""
    groups: dict[int, list[Tally]] = {}
    for tally in tallies:
        groups.setdefault(tally.problem, []).append(tally)
    cells = sorted(cells_of(tallies))
    modes = [modes_in(groups[cell.problem]) for cell in cells]
    return json.dumps([*zip(*cells, strict=True), modes], separators=(",", ":"))


def unpack_cells(text: str) -> tuple[Cell, ...]:
    """By problem."""
    return tuple(cell for cell, _ in cells_with_modes(text))


def cells_with_modes(text: str) -> Iterator[tuple[Cell, Modes]]:
    columns = json.loads(text)
    columns[MECHANISMS] = map(tuple, columns[MECHANISMS])
    *cells, modes = columns
    return zip(map(Cell._make, zip(*cells, strict=True)), modes, strict=True)


def pack_speedups(tallies: Iterable[Tally]) -> bytes:
    """By problem: speedups of correct attempts, then the lower ends of their intervals."""
    results = sorted(results_of(tallies), key=lambda result: result.problem)
    numbers = [number for one in results for number in (*one.speedups, *one.lows)]
    return struct.pack(f"<{len(numbers)}d", *numbers)


def unpack_results(text: str, packed: bytes | memoryview) -> tuple[Attempts, ...]:
    """Of what both functions above made of the same tallies."""
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
