"""Problems of a standing with the attempts that a filter on kernels leaves. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

from leaderboard.cell_columns import AT, PLACE, RATES, Columns
from leaderboard.failures import CORRECT
from leaderboard.scores import Attempts
from leaderboard.tallies import Narrow, distance, outcome_of


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
    kinds = {text: outcome_of(text) for text in set(columns.outcomes)}
    admits = {text: narrow.admits(kind) for text, kind in kinds.items()}
    if not any(admits.values()):
        return
    right = {text for text, kind in kinds.items() if kind.mode == CORRECT}
    ranks = {text: distance(kind.mode) for text, kind in kinds.items()}
    for (problem, category, made), every, rates in _by_problem(columns):
        own = [text for text in every if admits[text]]
        if not own or not narrow.covers(problem, category):
            continue
        counting = [admits[text] for text in every if text in right]
        speedups, lows, known = _compressed(rates, counting)
        best = speedups.index(max(speedups)) if speedups else None
        yield Part(
            problem,
            category,
            made,
            speedups,
            lows,
            own,
            max(own, key=ranks.__getitem__)
            if best is None
            else [text for text in own if text in right][best],
            None if best is None or math.isnan(known[best]) else known[best],
        )


def _by_problem(
    columns: Columns,
) -> Iterator[tuple[tuple[int, str, int], list[str], Sequence[float]]]:
    attempt, rate = 0, 0
    places = zip(*(columns.numbers[AT[name]] for name in PLACE), strict=True)
    for problem, category, made, correct in places:
        last, end = attempt + made, rate + RATES * correct
        yield (problem, category, made), columns.outcomes[attempt:last], columns.rates[rate:end]
        attempt, rate = last, end


def _compressed(rates: Sequence[float], wanted: Sequence[bool]) -> list[tuple[float, ...]]:
    n = len(wanted)
    return [tuple(compress(rates[i * n : (i + 1) * n], wanted)) for i in range(RATES)]
