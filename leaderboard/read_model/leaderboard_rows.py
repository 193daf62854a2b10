"""A submission in one setting, summed up and packed as a Standing keeps it. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, Self

import orjson

from leaderboard.metrics import scores, thresholds
from leaderboard.metrics.failures import FAILURE_MODES
from leaderboard.metrics.scores import Sums
from leaderboard.metrics.tallies import Narrow, Tally, outcome_of
from leaderboard.read_model.cell_columns import AT, COUNTS, Columns, Packed
from leaderboard.read_model.kernel_filters import parts_of

SUMS = Sums._fields


class Totals(NamedTuple):
    """`sums` in the order of SUMS, `modes` in that of FAILURE_MODES; `backends` by how many
    problems they are used for, the most used first. Stored as the JSON of a list."""

    sums: Sequence[float]
    utilisation: float | None
    modes: Sequence[int]
    backends: Sequence[str]

    @classmethod
    def unpack(cls, text: str) -> Self:
        return cls(*orjson.loads(text))

    @property
    def summed(self) -> Sums:
        return Sums._make(self.sums)


class Stored(NamedTuple):
    """What of a Standing it takes to exchange one problem's part."""

    packed: Packed
    by_category: str
    by_threshold: bytes | memoryview


def columns_of(tallies: Sequence[Tally], k: int) -> dict[str, Any]:
    """What a Standing holds besides its place; `k` is how many attempts a problem were drawn."""
    by_threshold = thresholds.pack((tally.results for tally in tallies), k)
    return _columns(Columns.of(tallies), k, {}) | {"by_threshold": by_threshold}


def with_tally(stored: Stored, problem: int, tally: Tally | None, k: int) -> dict[str, Any] | None:
    """The columns with one problem's part in place of what it was, less those of `stored` that stay
    as they are; None where nothing is left. What is stored of other categories need not be made
    again."""
    columns = Columns.unpack(stored.packed)
    numbers = columns.numbers
    known = dict(zip(numbers[AT["problem"]], numbers[AT["category"]], strict=True))
    affected = {known.get(problem), tally.cell.category if tally else None}
    removed = columns.put(problem, tally)
    if not columns.numbers[0]:
        return None
    before = orjson.loads(stored.by_category)
    others = {name: totals for name, totals in before.items() if name not in affected}
    added = [tally.results] if tally else []
    by_threshold = thresholds.changed(stored.by_threshold, k, added=added, removed=removed)
    found = _columns(columns, k, others) | {"by_threshold": by_threshold}
    kept = {**stored._asdict(), **stored.packed._asdict()}
    return {name: value for name, value in found.items() if kept.get(name) != value}


def _columns(columns: Columns, k: int, unchanged: Mapping[str, Any]) -> dict[str, Any]:
    numbers = columns.numbers
    categories = numbers[AT["category"]]
    made = {
        name: _totals(_chosen(columns, [own == name for own in categories]), k)
        for name in set(categories) - set(unchanged)
    }
    return {
        "attempted": len(categories),
        "made": sum(numbers[AT["made"]]),
        "total": _dumped(_totals(columns, k)),
        "solved": letters(dict(zip(numbers[AT["problem"]], numbers[AT["correct"]], strict=True))),
        "by_category": _dumped(dict(sorted({**unchanged, **made}.items()))),
        **columns.pack()._asdict(),
    }


def _dumped(value: object) -> str:
    return orjson.dumps(value, default=tuple).decode()


def letters(correct: Mapping[int, int]) -> str:
    """Of correct attempts by problem: that of number n stands at n."""
    found = [" "] * (max(correct) + 1)
    for number, right in correct.items():
        found[number] = "1" if right else "0"
    return "".join(found)


def _chosen(columns: Columns, wanted: Sequence[bool]) -> Columns:
    """As much of it as totals need."""
    return columns._replace(numbers=[list(compress(one, wanted)) for one in columns.numbers])


def _totals(columns: Columns, k: int) -> Totals:
    numbers = columns.numbers
    summed = scores.sums_of([numbers[at] for at in COUNTS], k=k)
    solved = zip(numbers[AT["best_speedup"]], numbers[AT["utilisation"]], strict=True)
    return Totals(
        sums=list(summed),
        utilisation=_median(found for best, found in solved if best is not None),
        modes=_added(numbers[AT["modes"]]),
        backends=_most_used(numbers[AT["backend"]]),
    )


def _median(values: Iterable[float | None]) -> float | None:
    """Over the problems solved, of the fastest kernel of each."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _added(modes: Iterable[Sequence[int]]) -> list[int]:
    return list(map(sum, zip(*modes, strict=True)))


def _most_used(backends: Iterable[str]) -> list[str]:
    used = Counter(backends)
    return sorted(used, key=lambda name: (-used[name], name))


def totals_of(columns: Columns, k: int, narrow: Narrow, p: float = 1.0) -> Totals | None:
    """None where no kernel counts. Another `p` needs what `parts_of` needs."""
    if narrow.is_by_problem:
        numbers = columns.numbers
        places = zip(numbers[AT["problem"]], numbers[AT["category"]], strict=True)
        wanted = [narrow.covers(*place) for place in places]
        return _totals(_chosen(columns, wanted), k) if any(wanted) else None
    parts = list(parts_of(columns, narrow))
    if not parts:
        return None
    ended = Counter(outcome for part in parts for outcome in part.outcomes)
    modes = Counter[str | None]()
    for outcome, n in ended.items():
        modes[outcome_of(outcome).mode] += n
    counts = [scores.counts_of(part.made, part.speedups, part.lows, p) for part in parts]
    summed = scores.sums_of(list(zip(*counts, strict=True)), k=k)
    return Totals(
        sums=list(summed),
        utilisation=_median(part.utilisation for part in parts),
        modes=[modes[mode] for mode in FAILURE_MODES],
        backends=_most_used(outcome_of(part.told).backend for part in parts),
    )
