"""What boards know of one submission in one setting: its attempts by problem and kind. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from leaderboard.failures import FAILURE_MODES, failure_mode
from leaderboard.scores import Attempts

Row = Mapping[str, Any]


class Kind(NamedTuple):
    """What filters tell kernels apart by."""

    backend: str
    mechanisms: tuple[str, ...]
    nccl: bool


# A matrix makes 17,000 of these two, and tuples are made five times as fast as dataclasses.
class Tally(NamedTuple):
    """Attempts of one kind at one problem; `source` is the codebase that this was taken from.

    `modes` counts them by FAILURE_MODES. From `verdict` on it tells of the fastest correct
    attempt or, where none is correct, of the one that came furthest.
    """

    problem: int
    category: str
    source: str
    kind: Kind
    made: int
    speedups: tuple[float, ...]
    lows: tuple[float, ...]
    modes: tuple[int, ...]
    verdict: str
    mode: str | None
    utilisation: float | None
    run: str
    kernel: str


class Cell(NamedTuple):
    """A submission at a problem, as a matrix shows it.

    `made` and `correct` count attempts. From `verdict` on it tells of the fastest correct attempt
    or, where none is correct, of the one that came furthest.
    """

    problem: int
    category: str
    made: int
    correct: int
    best_speedup: float | None
    best_low: float | None
    verdict: str
    mode: str | None
    kernel: str
    run: str
    utilisation: float | None
    backend: str
    mechanisms: tuple[str, ...]
    nccl: bool


@dataclass(frozen=True, kw_only=True)
class Narrow:
    """Which problems are looked at (by category and source) and which kernels count there.

    Others stay attempts that were made, and count as failed.
    """

    category: str = ""
    source: str = ""
    backend: str = ""
    mechanism: str = ""
    nccl_free: bool = False

    @property
    def is_by_category(self) -> bool:
        """Whether it asks for nothing but a category, or for all."""
        return not (self.source or self.backend or self.mechanism or self.nccl_free)

    def covers(self, tally: Tally) -> bool:
        return self.category in ("", tally.category) and self.source in ("", tally.source)

    def admits(self, kind: Kind) -> bool:
        return (
            self.backend in ("", kind.backend)
            and (not self.mechanism or self.mechanism in kind.mechanisms)
            and not (self.nccl_free and kind.nccl)
        )


EVERYTHING = Narrow()


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What boards tell problems apart by."""

    number: int
    category: str
    source: str


def tallies_of(subject: Subject, attempts: Iterable[Row]) -> list[Tally]:
    """Of a Summary's `attempts`; ordered by kind."""
    by_kind: dict[Kind, list[Row]] = {}
    for row in attempts:
        kind = Kind(row["backend"], tuple(row["mechanisms"]), row["nccl"])
        by_kind.setdefault(kind, []).append(row)
    return [_tally(subject, kind, by_kind[kind]) for kind in sorted(by_kind)]


def _tally(subject: Subject, kind: Kind, rows: Sequence[Row]) -> Tally:
    modes = [failure_mode(row["verdict"], row["cause"]) for row in rows]
    counts = Counter(modes)
    correct = [row for row in rows if row["speedup"] is not None]
    told = max(range(len(rows)), key=lambda i: (rows[i]["speedup"] or 0.0, _distance(modes[i])))
    return Tally(
        problem=subject.number,
        category=subject.category,
        source=subject.source,
        kind=kind,
        made=len(rows),
        speedups=tuple(row["speedup"] for row in correct),
        lows=tuple(row["low"] for row in correct),
        modes=tuple(counts[mode] for mode in FAILURE_MODES),
        verdict=rows[told]["verdict"],
        mode=modes[told],
        utilisation=rows[told]["utilisation"],
        run=rows[told]["run"],
        kernel=rows[told]["kernel"],
    )


def _distance(mode: str | None) -> int:
    """How far an attempt came; a verdict without a mode says least."""
    return FAILURE_MODES.index(mode) if mode else -1


def results_of(tallies: Iterable[Tally], narrow: Narrow = EVERYTHING) -> tuple[Attempts, ...]:
    """By problem; those without a kernel that counts are left out."""
    return tuple(_attempts(group, narrow) for group in _by_problem(tallies, narrow))


def _attempts(group: Sequence[Tally], narrow: Narrow) -> Attempts:
    own = _admitted(group, narrow)
    return Attempts(
        problem=group[0].problem,
        category=group[0].category,
        made=sum([tally.made for tally in group]),
        speedups=tuple(chain.from_iterable([tally.speedups for tally in own])),
        lows=tuple(chain.from_iterable([tally.lows for tally in own])),
    )


def cells_of(tallies: Iterable[Tally], narrow: Narrow = EVERYTHING) -> tuple[Cell, ...]:
    return tuple(_cell(group, narrow) for group in _by_problem(tallies, narrow))


def _by_problem(tallies: Iterable[Tally], narrow: Narrow) -> list[list[Tally]]:
    groups: dict[int, list[Tally]] = {}
    for tally in tallies:
        if narrow is EVERYTHING or narrow.covers(tally):
            groups.setdefault(tally.problem, []).append(tally)
    return [group for group in groups.values() if _admitted(group, narrow)]


def _admitted(group: Sequence[Tally], narrow: Narrow) -> Sequence[Tally]:
    if narrow is EVERYTHING:
        return group
    return [tally for tally in group if narrow.admits(tally.kind)]


def _cell(group: Sequence[Tally], narrow: Narrow) -> Cell:
    own = _admitted(group, narrow)
    told = max(own, key=_rank) if len(own) > 1 else own[0]
    speedup, low = max(zip(told.speedups, told.lows, strict=True), default=(None, None))
    return Cell(
        told.problem,
        told.category,
        sum([tally.made for tally in group]),
        sum([len(tally.speedups) for tally in own]),
        speedup,
        low,
        told.verdict,
        told.mode,
        told.kernel,
        told.run,
        told.utilisation,
        *told.kind,
    )


def _rank(tally: Tally) -> tuple[float, int]:
    return (max(tally.speedups, default=0.0), _distance(tally.mode))


def modes_in(tallies: Iterable[Tally], narrow: Narrow = EVERYTHING) -> list[int]:
    """How many attempts that count ended in each of FAILURE_MODES."""
    own = [tally for tally in tallies if narrow.covers(tally) and narrow.admits(tally.kind)]
    return [sum(counts) for counts in zip(*(tally.modes for tally in own), strict=True)]


def utilisation_of(cells: Iterable[Cell]) -> float | None:
    """Median over the problems solved, of the fastest kernel of each."""
    known = [cell.utilisation for cell in cells if cell.correct and cell.utilisation is not None]
    return statistics.median(known) if known else None
