"""How the totals of a board's rows are had: stored, or added up from as few columns as will do."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.db.models.functions import Substr

from leaderboard.kit.prepared import Given
from leaderboard.metrics import scores, thresholds
from leaderboard.metrics.scores import Attempts, Sums
from leaderboard.metrics.tallies import EVERYTHING, Narrow
from leaderboard.read_model.cell_columns import Columns
from leaderboard.read_model.details import results_of, without_kernels
from leaderboard.read_model.leaderboard_rows import Totals, totals_of

# Nothing is known at another p than this without looking at speedups.
USUAL_P = 1.0
# Of `by_threshold`, at the value `place`.
RECORD = "record"
RECORD_AT = Substr("by_threshold", Given("place"), thresholds.RECORD.size)
# None where no kernel counts.
Found = tuple[Totals, Sums] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """Which columns of a Standing to read, and which `values` that takes; `sum_up` makes the totals
    of a submission's k and these columns. The same one for the same question; `is_long` where the
    columns are too long to be remembered."""

    names: Sequence[str]
    sum_up: Callable[..., Found]
    values: Mapping[str, int]

    @property
    def is_long(self) -> bool:
        return "cells" in self.names


@functools.lru_cache(maxsize=64)
def reading(narrow: Narrow, p: float) -> Reading:
    values: dict[str, int] = {}
    names: tuple[str, ...]
    sum_up: Callable[..., Found]
    wide = () if p == USUAL_P else ("cells", "speedups")
    if narrow == EVERYTHING and p == USUAL_P:
        names, sum_up = ("total",), _everything
    elif narrow == EVERYTHING:
        names, sum_up = ("total", RECORD), _at_threshold
        values = {"place": thresholds.place_of(p) + 1}
    elif narrow.is_by_category:
        names, sum_up = ("by_category", *wide), functools.partial(_in_category, narrow, p)
    elif narrow.is_by_problem:
        names, sum_up = wide or ("cells",), functools.partial(_of_problems, narrow, p)
    else:
        names = ("cells", "outcomes", "speedups")
        sum_up = functools.partial(_of_kinds, narrow, p)
    return Reading(names=names, sum_up=sum_up, values=values)


@functools.lru_cache(maxsize=64)
def reading_of_baselines(narrow: Narrow, p: float) -> Reading:
    """Adds up the same columns, whatever filter there is on kernels: others are compared with
    baselines as they are."""
    found = reading(narrow, p)
    if narrow.is_by_problem:
        return found
    return replace(found, sum_up=functools.partial(_of_all_kinds, narrow.of_all_kinds, p))


def _everything(k: int, total: str) -> Found:
    found = Totals.unpack(total)
    return found, found.summed


def _at_threshold(k: int, total: str, record: bytes | memoryview) -> Found:
    found = Totals.unpack(total)
    return found, found.summed._replace(**thresholds.unpack(record)._asdict())


def _in_category(narrow: Narrow, p: float, k: int, text: str, *wide: Any) -> Found:
    key = f'"{narrow.category}":'
    if key not in text:
        return None
    # The others are not decoded: that takes ten times as long. Only at its end stands a "]]".
    start = text.index("[", text.index(key))
    found = Totals.unpack(text[start : text.index("]]", start) + 2])
    return found, (_above(p, k, results_of(narrow, *wide)) if wide else found.summed)


def _of_problems(narrow: Narrow, p: float, k: int, cells: str, *wide: Any) -> Found:
    found = totals_of(Columns(orjson.loads(cells), [], [], [], array("d")), k, narrow)
    if found is None:
        return None
    return found, (_above(p, k, results_of(narrow, cells, *wide)) if wide else found.summed)


def _of_kinds(narrow: Narrow, p: float, k: int, *packed: Any) -> Found:
    found = totals_of(without_kernels(*packed), k, narrow, p)
    return found and (found, found.summed)


def _of_all_kinds(narrow: Narrow, p: float, k: int, cells: str, _: str, speedups: Any) -> Found:
    return _of_problems(narrow, p, k, cells, speedups)


def _above(p: float, k: int, results: Sequence[Attempts]) -> Sums:
    return scores.sums(results, k=k, p=p)
