"""Problems of a leaderboard row with the attempts that a filter on kernels leaves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

from leaderboard.metrics.board_numbers import MEASURED, SUMMED, TAKEN
from leaderboard.metrics.failures import CORRECT
from leaderboard.metrics.number import known_sum
from leaderboard.metrics.scores import Attempts
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
                **{f"{name}s": [row[name] for row in timed] for name in MEASURED},
                **{name: known_sum(row[name] for row in attempts) for name in TAKEN},
            }
        )
    return {"kinds": [kind._asdict() for kind in places], "problems": problems}


def _kinds(stored: StoredAttempts) -> list[AttemptOutcome]:
    return [
        AttemptOutcome(**{**one, "mechanisms": tuple(one["mechanisms"])}) for one in stored["kinds"]
    ]


class ProblemResult(NamedTuple):
    """Holds a problem with the failure modes in which the attempts that count `ended`; `told` is
    the outcome of the fastest correct one or, where none is correct, of the one that came
    furthest. `numbers` are those that are SUMMED, by their keys."""

    problem: int
    category: str
    made: int
    correct: int
    speedups: tuple[float, ...]
    lows: tuple[float, ...]
    ended: Sequence[str | None]
    told: AttemptOutcome
    numbers: Mapping[str, float | None]

    @property
    def best(self) -> tuple[float | None, float | None]:
        """Return the highest speedup, and the lower end of its interval."""
        return max(zip(self.speedups, self.lows, strict=True), default=(None, None))

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
        own, made = [kind for kind in one["kinds"] if admits[kind]], len(one["kinds"])
        if not own or not narrow.covers(one["problem"], one["category"]):
            continue
        counting = [admits[kind] for kind in one["kinds"] if right[kind]]
        speedups = tuple(compress(one["speedups"], counting))
        measured = {name: list(compress(one[f"{name}s"], counting)) for name in MEASURED}
        every = {**measured, "speedup": speedups}
        best = speedups.index(max(speedups)) if speedups else None
        solved = [kind for kind in own if right[kind]]
        told = max(own, key=ranks.__getitem__) if best is None else solved[best]
        yield ProblemResult(
            problem=one["problem"],
            category=one["category"],
            made=made,
            correct=sum(counting),
            speedups=speedups,
            lows=tuple(compress(one["lows"], counting)),
            ended=[modes[kind] for kind in own],
            told=kinds[told],
            numbers={
                **{name: None if best is None else own[best] for name, own in measured.items()},
                **{name: one[name] for name in TAKEN},
                **{n.key: n.of_kernels(made, every) for n in SUMMED if n.of_kernels},
            },
        )
