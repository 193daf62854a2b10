"""What a Standing holds of its problems, column by column and by number. Pure.

`cells` has the numbers of each problem, `kernels` says which attempt a cell tells of, `outcomes`
how every attempt ended, `speedups` the numbers of every correct one.
"""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self

import orjson

from leaderboard.metrics.scores import Attempts, Counts
from leaderboard.metrics.tallies import Cell, Tally

NUMBERS = (
    *("problem", "category", "made", "correct", "faster", "likely_faster", "log_speedup"),
    *("best_speedup", "best_low", "mode", "utilisation", "backend", "modes"),
)
KERNELS = ("verdict", "kernel", "run", "mechanisms", "nccl")
AT = {name: index for index, name in enumerate(NUMBERS)}
COUNTS = [AT[name] for name in Counts._fields]
# Where each field of a Cell lies in both lists of columns, one after the other.
CELL = [(*NUMBERS, *KERNELS).index(name) for name in Cell._fields]
MECHANISMS = Cell._fields.index("mechanisms")
# Speedup, lower end of its interval, utilisation: so many numbers a correct attempt.
RATES = 3
PLACE = ("problem", "category", "made", "correct")


class Packed(NamedTuple):
    """As columns of a Standing."""

    cells: str
    kernels: str
    outcomes: str
    speedups: bytes | memoryview


class Columns(NamedTuple):
    """Unpacked. `rates` are of each problem all speedups, all lower ends, all utilisations (NaN
    where there is none); `outcomes` are those of all attempts, problem by problem, by their place
    in `kinds`."""

    numbers: list[list[Any]]
    kernels: list[list[Any]]
    kinds: list[str]
    outcomes: list[int]
    rates: array[float]

    @classmethod
    def of(cls, tallies: Sequence[Tally]) -> Self:
        """Of different problems."""
        columns = cls([[] for _ in NUMBERS], [[] for _ in KERNELS], [], [], array("d"))
        for tally in sorted(tallies, key=lambda one: one.cell.problem):
            columns.put(tally.cell.problem, tally)
        return columns

    @classmethod
    def unpack(cls, packed: Packed) -> Self:
        rates = array("d")
        rates.frombytes(packed.speedups)
        numbers, kernels = orjson.loads(packed.cells), orjson.loads(packed.kernels)
        kinds, outcomes = orjson.loads(packed.outcomes)
        return cls(numbers, kernels, kinds, outcomes, rates)

    def pack(self) -> Packed:
        return Packed(
            cells=_dumped(self.numbers),
            kernels=_dumped(self.kernels),
            outcomes=_dumped(_in_order(self.kinds, self.outcomes)),
            speedups=self.rates.tobytes(),
        )

    def put(self, problem: int, tally: Tally | None) -> list[Attempts]:
        """A problem's part in place of what it was; None leaves it out. What results it had before
        come back."""
        problems, made, correct = (self.numbers[AT[n]] for n in ("problem", "made", "correct"))
        at = bisect_left(problems, problem)
        end = at + (problem in problems[at : at + 1])
        attempts = slice(sum(made[:at]), sum(made[:end]))
        rates = slice(RATES * sum(correct[:at]), RATES * sum(correct[:end]))
        before = list(_results([column[at:end] for column in self.numbers], self.rates[rates]))
        self.outcomes[attempts] = map(self._number, tally.outcomes if tally else ())
        self.rates[rates] = array("d", _rates_of(tally) if tally else ())
        for columns, names in ((self.numbers, NUMBERS), (self.kernels, KERNELS)):
            values = _values(tally, names) if tally else [()] * len(names)
            for column, value in zip(columns, values, strict=True):
                column[at:end] = value
        return before

    def _number(self, outcome: str) -> int:
        if outcome not in self.kinds:
            self.kinds.append(outcome)
        return self.kinds.index(outcome)


def _values(tally: Tally, names: Sequence[str]) -> list[tuple[Any]]:
    known = {**tally.counts._asdict(), **tally.cell._asdict(), "modes": tally.modes}
    return [(known[name],) for name in names]


def _rates_of(tally: Tally) -> Iterator[float]:
    known = (math.nan if value is None else value for value in tally.utilisations)
    return chain(tally.results.speedups, tally.results.lows, known)


def _in_order(kinds: Sequence[str], outcomes: list[int]) -> list[Any]:
    """Those that occur by name, and the outcomes by their places then."""
    used = sorted(set(outcomes), key=kinds.__getitem__)
    if used == list(range(len(kinds))):
        return [kinds, outcomes]
    place = {kind: index for index, kind in enumerate(used)}
    return [[kinds[kind] for kind in used], list(map(place.__getitem__, outcomes))]


def _dumped(columns: object) -> str:
    return orjson.dumps(columns).decode()


def unpack_cells(cells: str, kernels: str) -> tuple[Cell, ...]:
    """By problem."""
    columns = [*orjson.loads(cells), *orjson.loads(kernels)]
    own = [columns[at] for at in CELL]
    own[MECHANISMS] = map(tuple, own[MECHANISMS])
    return tuple(map(Cell._make, zip(*own, strict=True)))


def unpack_some(cells: str, names: Sequence[str]) -> list[list[Any]]:
    """These columns of numbers, but not `modes`: the others are cut off unread, for a third of the
    time. Nothing in a column before `modes` has a bracket in it."""
    wanted = [AT[name] for name in names]
    columns = cells.removeprefix("[[").split("],[", max(wanted) + 1)
    return [orjson.loads(f"[{columns[at]}]") for at in wanted]


def unpack_results(cells: str, speedups: bytes | memoryview) -> tuple[Attempts, ...]:
    """By problem."""
    return tuple(_results(orjson.loads(cells), struct.unpack(f"<{len(speedups) // 8}d", speedups)))


def _results(numbers: Sequence[list[Any]], rates: Sequence[float]) -> Iterator[Attempts]:
    start = 0
    for problem, category, made, n in zip(*(numbers[AT[name]] for name in PLACE), strict=True):
        middle, end = start + n, start + 2 * n
        yield Attempts(
            problem=problem,
            category=category,
            made=made,
            speedups=tuple(rates[start:middle]),
            lows=tuple(rates[middle:end]),
        )
        start += RATES * n
