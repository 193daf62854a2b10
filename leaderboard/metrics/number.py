"""Defines what is declared of a number of a board. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter
from typing import Any

from leaderboard.metrics.intervals import Interval, wilson_interval
from leaderboard.metrics.scores import Score

# What was measured of the correct kernels of a problem, by the name of the column of Run; their
# speedups, too.
Measured = Mapping[str, Sequence[float | None]]


class Summing(Enum):
    """Says how a number is summed up over problems.

    MEDIAN: a column of Run, that of each problem's fastest kernel, or what `of_kernels` says of
    each problem; the median over problems.
    TOTAL: an entry of each attempt; the sum, None where an attempt does not have it.
    MEAN: what `of_kernels` says of each problem, the mean over scored problems.
    """

    MEDIAN = auto()
    TOTAL = auto()
    MEAN = auto()


@dataclass(frozen=True, kw_only=True, eq=False)
class Number:
    """Describes a number of a row of a board.

    `summed` says how it is summed up of runs; without it, `of` is where a row has it. A number with
    a `unit` is a column, under the head `group`, drawn as its `cell` says: see CELLS of
    read_model/columns.py. One with a `plain` name stands by that name on the first page. It may
    stand `below` the share of another key instead. `in_category` repeats a column on pages of
    categories.

    JSON and CSV have a number by its `key` if it is `exported`, and the ends of its 95 % interval
    if it has `ends`; the table `places` of snapshots has it by its `snapshot` name, of this `kind`.
    `is_share` says that values are shares of the scored problems, which have intervals and so tie
    groups, `is_timed` that there are none where nothing was timed, `falls` that the greatest comes
    first. `means` explains it in docs/data.md and, with an `anchor` of the methodology, on the
    board.
    """

    key: str
    of: str = ""
    summed: Summing | None = None
    of_kernels: Callable[[int, Measured], float | None] | None = None
    label: str = ""
    plain: str = ""
    unit: str = ""
    group: str = ""
    cell: str = ""
    below: str = ""
    falls: bool = True
    is_share: bool = False
    is_timed: bool = False
    in_category: bool = False
    exported: bool = True
    ends: bool = False
    snapshot: str = ""
    kind: str = "float"
    means: str = ""
    anchor: str = ""

    def value(self, row: Any) -> float | None:
        """Return the number of a row of a board; None where it is not known."""
        found: float | None
        found = row.numbers.get(self.key) if self.summed else attrgetter(self.of)(row)
        return found

    def interval(self, row: Any) -> Interval | None:
        """Return the 95 % interval of a share, or of the speedup."""
        if not self.is_share:
            found: Interval | None = row.speedup_interval
            return found
        value = self.value(row)
        return None if value is None else wilson_interval(value, row.score.scored)

    def over(self, values: Iterable[float | None]) -> float | None:
        """Sum up what the problems of a row have."""
        if self.summed is not Summing.MEDIAN:
            return known_sum(values)
        found = known(values)
        return statistics.median(found) if found else None

    def of_sum(self, summed: float | None, score: Score) -> float | None:
        """Scale a sum over a row's problems to what the row shows; None where nothing was timed."""
        if summed is None or (self.is_timed and not score.is_timed):
            return None
        if self.summed is not Summing.MEAN:
            return summed
        return summed / score.scored if score.scored else None


def known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def known_sum(values: Iterable[float | None]) -> float | None:
    """Return the sum; None where one of them is not known, as what is left would say too little."""
    every = list(values)
    return None if None in every else math.fsum(filter(None, every))
