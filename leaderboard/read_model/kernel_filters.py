"""Problems of a leaderboard row with the attempts that a filter on kernels leaves. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

from leaderboard.metrics.failures import CORRECT
from leaderboard.metrics.scores import Attempts, roofline_credit
from leaderboard.metrics.tallies import (
    EVERYTHING,
    AttemptOutcome,
    AttemptRow,
    KernelFilter,
    distance,
    outcome_of,
)

# As a LeaderboardRow stores it: see `outcomes_of`.
StoredAttempts = Mapping[str, Any]


def outcomes_of(rows: Iterable[tuple[int, str, Sequence[AttemptRow]]]) -> StoredAttempts:
    """Return how every attempt ended, of different problems in their order with the `attempts` of
    their Summary. `kinds` names each kind of Outcome in the order of their first attempts, and each
    problem its attempts by their place there, with the numbers of the correct ones in the same
    order (of all, or where nothing is timed of none), and what all took to make."""
    places: dict[AttemptOutcome, int] = {}
    problems = []
    for problem, category, attempts in rows:
        timed = [row for row in attempts if row["speedup"] is not None]
        problems.append(
            {
                "problem": problem,
                "category": category,
                "kinds": [places.setdefault(outcome_of(row), len(places)) for row in attempts],
                "speedups": [row["speedup"] for row in timed],
                "lows": [row["low"] for row in timed],
                "utilisations": [row["utilisation"] for row in timed],
                "idles": [row["idle"] for row in timed],
                "output_tokens": known_sum(row["output_tokens"] for row in attempts),
                "usd": known_sum(row["usd"] for row in attempts),
            }
        )
    return {"kinds": [kind._asdict() for kind in places], "problems": problems}


def known_sum(values: Iterable[float | None]) -> float | None:
    """Return the sum; None where one of them is not known, as what is left would say too little."""
    every = list(values)
    return None if None in every else math.fsum(filter(None, every))


def _kinds(stored: StoredAttempts) -> list[AttemptOutcome]:
    return [
        AttemptOutcome(**{**one, "mechanisms": tuple(one["mechanisms"])}) for one in stored["kinds"]
    ]


class ProblemResult(NamedTuple):
    """Holds a problem with the failure modes in which the attempts that count `ended`; `told` is
    the outcome of the fastest correct one or, where none is correct, of the one that came
    furthest. `utilisations` are those of the timed ones. `output_tokens` and `usd` are those of all
    attempts; None unless each tells them."""

    problem: int
    category: str
    made: int
    correct: int
    speedups: tuple[float, ...]
    lows: tuple[float, ...]
    ended: Sequence[str | None]
    told: AttemptOutcome
    utilisation: float | None
    utilisations: tuple[float | None, ...]
    idle: float | None
    output_tokens: float | None
    usd: float | None

    @property
    def best(self) -> tuple[float | None, float | None]:
        """Return the highest speedup, and the lower end of its interval."""
        return max(zip(self.speedups, self.lows, strict=True), default=(None, None))

    @property
    def credit(self) -> float | None:
        """Return the mean roofline credit of the attempts made."""
        return roofline_credit(self.made, self.utilisations)

    @property
    def results(self) -> Attempts:
        return Attempts(
            problem=self.problem,
            category=self.category,
            made=self.made,
            speedups=self.speedups,
            lows=self.lows,
            checked=self.correct - len(self.speedups),
        )


def parts_of(stored: StoredAttempts, narrow: KernelFilter = EVERYTHING) -> Iterator[ProblemResult]:
    """Yield the problems in their order, without those that have no kernel that counts."""
    kinds = _kinds(stored)
    admits = list(map(narrow.admits, kinds))
    if not any(admits):
        return
    modes = [kind.mode for kind in kinds]
    right = [mode == CORRECT for mode in modes]
    ranks = list(map(distance, modes))
    for one in stored["problems"]:
        own = [kind for kind in one["kinds"] if admits[kind]]
        if not own or not narrow.covers(one["problem"], one["category"]):
            continue
        counting = [admits[kind] for kind in one["kinds"] if right[kind]]
        speedups = tuple(compress(one["speedups"], counting))
        used = tuple(compress(one["utilisations"], counting))
        best = speedups.index(max(speedups)) if speedups else None
        solved = [kind for kind in own if right[kind]]
        told = max(own, key=ranks.__getitem__) if best is None else solved[best]
        yield ProblemResult(
            problem=one["problem"],
            category=one["category"],
            made=len(one["kinds"]),
            correct=sum(counting),
            speedups=speedups,
            lows=tuple(compress(one["lows"], counting)),
            ended=[modes[kind] for kind in own],
            told=kinds[told],
            utilisation=None if best is None else used[best],
            utilisations=used,
            idle=None if best is None else list(compress(one["idles"], counting))[best],
            output_tokens=one["output_tokens"],
            usd=one["usd"],
        )
