"""Sum up a submission in one setting as a LeaderboardRow stores it. Pure."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, Self

import orjson

from leaderboard.metrics import scores, thresholds
from leaderboard.metrics.attempts import CARRIED
from leaderboard.metrics.board_numbers import SUMMED
from leaderboard.metrics.dominance import Dominant, dominant
from leaderboard.metrics.scores import Sums
from leaderboard.metrics.tallies import AttemptRow, Cell, cell_of, in_order
from leaderboard.metrics.ties import Outcomes
from leaderboard.read_model.kernel_filters import (
    ProblemResult,
    StoredAttempts,
    outcomes_of,
    parts_of,
)

SUMS = Sums._fields
# Its number, its category, and the `attempts` of its Summary.
ProblemAttempts = tuple[int, str, Sequence[AttemptRow]]


class Totals(NamedTuple):
    """Sums up problems: `modes` counts attempts by failure mode, `backends` stand in the order of
    how many problems they are used for. `made` counts attempts. `log_squares` adds up the
    squares of the logarithms that `log_speedup` of the sums adds up, `dominant` is the problem that
    dominates their mean, `outcomes` are those of each problem. `numbers` are those that are SUMMED.
    Stored as an object with their keys and the names of the other fields."""

    sums: Sums
    modes: Mapping[str, int]
    backends: Sequence[str]
    made: int
    log_squares: float
    dominant: Dominant | None
    outcomes: Outcomes
    numbers: Mapping[str, float | None]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        own = {name: stored[name] for name in ("modes", "backends", "made", "log_squares")}
        numbers = {number.key: stored[number.key] for number in SUMMED}
        most = Dominant.of(stored["dominant"])
        ended = Outcomes(**stored["outcomes"])
        return cls(
            sums=Sums(**stored["sums"]), dominant=most, outcomes=ended, numbers=numbers, **own
        )

    @property
    def stored(self) -> dict[str, Any]:
        fields = self._asdict()
        numbers = fields.pop("numbers")
        most = self.dominant and self.dominant._asdict()
        made = {"dominant": most, "outcomes": self.outcomes._asdict()}
        return {**fields, "sums": self.sums._asdict(), **made, **numbers}


def columns_of(problems: Iterable[ProblemAttempts], k: int) -> dict[str, Any]:
    """Return what a LeaderboardRow holds besides its place. `k` is how many attempts a problem were
    drawn."""
    rows = sorted(problems, key=itemgetter(0))
    return _columns(outcomes_of(rows), _cells(rows), _ran(rows), k)


def _cells(rows: Iterable[ProblemAttempts]) -> list[Cell]:
    return [cell for row in rows if (cell := cell_of(*row))]


def _ran(rows: Iterable[ProblemAttempts]) -> dict[str, Any]:
    """Count the attempts that ran in the setting itself, and list their problems."""
    own = {number: sum(CARRIED not in entry for entry in attempts) for number, _, attempts in rows}
    return {
        "attempts": sum(own.values()),
        "problems": [number for number, count in own.items() if count],
    }


def _columns(
    outcomes: StoredAttempts, cells: Sequence[Cell], ran: Mapping[str, Any], k: int
) -> dict[str, Any]:
    """Return the columns of problems in their order; `ran` as of `_ran`."""
    parts = list(parts_of(outcomes))
    by_category: dict[str, list[ProblemResult]] = {}
    for part in parts:
        by_category.setdefault(part.category, []).append(part)
    columns = {
        "total": {**totals_of(parts, k).stored, "ran": ran},
        "by_category": {
            name: totals_of(own, k).stored for name, own in sorted(by_category.items())
        },
        "by_threshold": thresholds.curves((part.results for part in parts), k),
        "cells": dict(zip(Cell._fields, zip(*cells, strict=True), strict=True)),
        "outcomes": outcomes,
    }
    stored = {name: orjson.dumps(value).decode() for name, value in columns.items()}
    return {
        "attempted": len(parts),
        "made": sum(part.made for part in parts),
        "solved": letters(parts),
        "digest": hashlib.sha256(stored["outcomes"].encode()).hexdigest(),
        **stored,
    }


def letters(parts: Iterable[ProblemResult]) -> str:
    """Return a letter at the number of each problem: 1 solved, 0 tried, else a space."""
    known = {part.problem: "1" if part.correct else "0" for part in parts}
    return "".join(known.get(number, " ") for number in range(max(known, default=-1) + 1))


def totals_of(parts: Sequence[ProblemResult], k: int, p: float = 1.0) -> Totals:
    """Return the totals of different problems."""
    counts = [
        scores.counts_of((part.made, part.correct), part.speedups, part.lows, p) for part in parts
    ]
    logs = {
        part.problem: one.log_speedup
        for part, one in zip(parts, counts, strict=True)
        if one.log_speedup is not None
    }
    modes = Counter(chain.from_iterable(part.ended for part in parts))
    return Totals(
        sums=scores.sums_of(list(zip(*counts, strict=True)), k=k),
        modes=in_order(modes),
        backends=_most_used(part.told.backend for part in parts),
        made=sum(part.made for part in parts),
        log_squares=math.fsum((one.log_speedup or 0.0) ** 2 for one in counts),
        dominant=dominant(logs),
        outcomes=Outcomes(
            right=_by_number(parts, [one.correct / one.made for one in counts]),
            fast=_by_number(parts, [one.faster / one.made for one in counts]),
        ),
        numbers={one.key: one.over(part.numbers[one.key] for part in parts) for one in SUMMED},
    )


def _by_number(parts: Sequence[ProblemResult], shares: Sequence[float]) -> list[float | None]:
    """Return the share at the number of each problem, None at others, as Outcomes holds them."""
    found = {
        part.problem: int(share) if share in (0.0, 1.0) else round(share, 4)
        for part, share in zip(parts, shares, strict=True)
    }
    return [found.get(number) for number in range(max(found, default=-1) + 1)]


def _most_used(backends: Iterable[str]) -> list[str]:
    used = Counter(backends)
    return sorted(used, key=lambda name: (-used[name], name))


def cells_in(stored: str) -> tuple[Cell, ...]:
    """Return the cells of a LeaderboardRow, by problem."""
    columns = orjson.loads(stored)
    columns["mechanisms"] = map(tuple, columns["mechanisms"])
    return tuple(map(Cell, *(columns[name] for name in Cell._fields)))
