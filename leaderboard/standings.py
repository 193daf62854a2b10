"""A submission in one setting, summed up and packed as a Standing keeps it. Pure."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from leaderboard.cell_columns import modes_by_problem, pack_cells, pack_speedups
from leaderboard.failures import FAILURE_MODES
from leaderboard.scores import Attempts, Sums, sums
from leaderboard.tallies import (
    EVERYTHING,
    Cell,
    Kind,
    Narrow,
    Tally,
    cells_of,
    modes_in,
    results_of,
    utilisation_of,
)

SUMS = tuple(Sums.__dataclass_fields__)
# JSON knows no tuples; these columns of a packed tally are made into some again.
LISTS = tuple(Tally._fields.index(name) for name in ("speedups", "lows", "modes"))
KIND = Tally._fields.index("kind")


class Totals(NamedTuple):
    """`sums` in the order of SUMS, `modes` in that of FAILURE_MODES; `backends` by how many
    problems they are used for, the most used first."""

    sums: Sequence[float]
    utilisation: float | None
    modes: Sequence[int]
    backends: Sequence[str]

    @property
    def summed(self) -> Sums:
        return Sums(**dict(zip(SUMS, self.sums, strict=True)))  # type: ignore[arg-type]

    @property
    def modes_found(self) -> dict[str, int]:
        return {mode: n for mode, n in zip(FAILURE_MODES, self.modes, strict=True) if n}


def columns_of(
    tallies: Sequence[Tally], k: int, unchanged: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a Standing holds besides its place. Totals of categories that have not changed since
    they were stored need not be made again."""
    known = unchanged or {}
    cells = sorted(cells_of(tallies))
    results = sorted(results_of(tallies), key=lambda result: result.problem)
    modes = modes_by_problem(tallies)
    changed = {cell.category for cell in cells} - set(known)
    made = {
        name: _totals(
            [result for result in results if result.category == name],
            [cell for cell in cells if cell.category == name],
            [modes[cell.problem] for cell in cells if cell.category == name],
            k,
        )
        for name in changed
    }
    return {
        "attempted": len(cells),
        "total": _totals(results, cells, modes.values(), k),
        "by_category": dict(sorted({**known, **made}.items())),
        "tallies": pack(tallies),
        "cells": pack_cells(cells, modes),
        "speedups": pack_speedups(results),
    }


def totals_of(tallies: Sequence[Tally], k: int, narrow: Narrow = EVERYTHING) -> Totals | None:
    """None where no kernel counts. `k` is how many attempts a problem were drawn."""
    results = results_of(tallies, narrow)
    if not results:
        return None
    return _totals(results, cells_of(tallies, narrow), [modes_in(tallies, narrow)], k)


def _totals(
    results: Sequence[Attempts], cells: Sequence[Cell], modes: Iterable[Sequence[int]], k: int
) -> Totals:
    summed = sums(results, k=k)
    used = Counter(cell.backend for cell in cells)
    return Totals(
        sums=[getattr(summed, name) for name in SUMS],
        utilisation=utilisation_of(cells),
        modes=list(map(sum, zip(*modes, strict=True))),
        backends=sorted(used, key=lambda name: (-used[name], name)),
    )


def pack(tallies: Iterable[Tally]) -> bytes:
    """The same bytes for the same tallies, in whatever order they come."""
    ordered = sorted(tallies, key=lambda tally: (tally.problem, tally.kind))
    kinds = sorted({tally.kind for tally in ordered})
    number = {kind: index for index, kind in enumerate(kinds)}
    rows = [[*tally[:KIND], number[tally.kind], *tally[KIND + 1 :]] for tally in ordered]
    text = json.dumps({"kinds": kinds, "tallies": rows}, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def unpack(packed: bytes | memoryview) -> list[Tally]:
    """Ordered by problem and kind."""
    data = json.loads(zlib.decompress(packed))
    kinds = [Kind(backend, tuple(tags), nccl) for backend, tags, nccl in data["kinds"]]
    return [_tally(row, kinds) for row in data["tallies"]]


def _tally(row: list[Any], kinds: Sequence[Kind]) -> Tally:
    row[KIND] = kinds[row[KIND]]
    for column in LISTS:
        row[column] = tuple(row[column])
    return Tally._make(row)
