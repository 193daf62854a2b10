"""Problems of a standing with the attempts that a filter on kernels leaves. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

from leaderboard.metrics.failures import CORRECT
from leaderboard.metrics.scores import Attempts
from leaderboard.metrics.tallies import Narrow, distance, outcome_of
from leaderboard.read_model.cell_columns import AT, PLACE, RATES, Columns


class Part(NamedTuple):
    """A problem with the `outcomes` that count; `told` is the one of the fastest correct attempt
    or, where none is correct, of the one that came furthest."""

    problem: int
    category: str
    made: int
    speedups: tuple[float, ...]
    lows: tuple[float, ...]
    outcomes: list[str]
    told: str
    utilisation: float | None

    @property
    def results(self) -> Attempts:
        return Attempts(
            problem=self.problem,
            category=self.category,
            made=self.made,
            speedups=self.speedups,
            lows=self.lows,
        )


def parts_of(columns: Columns, narrow: Narrow) -> Iterator[Part]:
    """By problem; those without a kernel that counts are left out."""
    kinds = list(map(outcome_of, columns.kinds))
    admits = list(map(narrow.admits, kinds))
    if not any(admits):
        return
    right = [kind.mode == CORRECT for kind in kinds]
    ranks = [distance(kind.mode) for kind in kinds]
    for (problem, category, made), every, rates in _by_problem(columns):
        own = [kind for kind in every if admits[kind]]
        if not own or not narrow.covers(problem, category):
            continue
        counting = [admits[kind] for kind in every if right[kind]]
        speedups, lows, known = _compressed(rates, counting)
        best = speedups.index(max(speedups)) if speedups else None
        solved = [kind for kind in own if right[kind]]
        told = max(own, key=ranks.__getitem__) if best is None else solved[best]
        yield Part(
            problem,
            category,
            made,
            speedups,
            lows,
            [columns.kinds[kind] for kind in own],
            columns.kinds[told],
            None if best is None or math.isnan(known[best]) else known[best],
        )


def _by_problem(
    columns: Columns,
) -> Iterator[tuple[tuple[int, str, int], list[int], Sequence[float]]]:
    attempt, rate = 0, 0
    places = zip(*(columns.numbers[AT[name]] for name in PLACE), strict=True)
    for problem, category, made, correct in places:
        last, end = attempt + made, rate + RATES * correct
        yield (problem, category, made), columns.outcomes[attempt:last], columns.rates[rate:end]
        attempt, rate = last, end


def _compressed(rates: Sequence[float], wanted: Sequence[bool]) -> list[tuple[float, ...]]:
    n = len(wanted)
    return [tuple(compress(rates[i * n : (i + 1) * n], wanted)) for i in range(RATES)]
