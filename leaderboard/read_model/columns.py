"""Sorts and draws rows of a board by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.metrics import scores
from leaderboard.metrics.board_numbers import BY_KEY, COLUMNS, NUMBERS
from leaderboard.metrics.number import Number
from leaderboard.metrics.ties import Shares, is_surely_better, overlap, place_ranges, tie_groups
from leaderboard.metrics.verdicts import words
from leaderboard.models import Trust
from leaderboard.read_model.boards import USUAL_P, BoardRow, Setting
from leaderboard.read_model.setting import tells_times


@dataclass(frozen=True, kw_only=True, eq=False)
class Words:
    """Describes what rows are sorted by that is no number. `falls` says that the greatest comes
    first."""

    key: str
    label: str
    value: Callable[[BoardRow], str | int | None]
    falls: bool = False

    def in_order(self, rows: Sequence[BoardRow], *, turned: bool) -> list[BoardRow]:
        """Sort stably; rows without a value come last in either direction."""
        pairs = [(self.value(row), row) for row in rows]
        return scores.known_first(pairs, descending=self.falls != turned)


def _fast_cell(number: Number, entry: BoardRow) -> SafeString:
    score = entry.score
    unsure = score.likely_faster - score.faster
    return cells.fast_cell(
        number.value(entry), number.interval(entry), score.likely_fast_at_1, unsure
    )


def _share_cell(number: Number, entry: BoardRow) -> SafeString:
    interval = number.interval(entry) if number.ends else None
    below = [
        f"{cells.share_text(one.value(entry))} {one.label}"
        for one in NUMBERS
        if one.below == number.key and one.value(entry) is not None
    ]
    return cells.share_cell(number.value(entry), interval, ", ".join(below))


# By the `cell` of a number.
CELLS: Mapping[str, Callable[[Number, BoardRow], SafeString]] = {
    "count": lambda number, entry: cells.count_cell(number.value(entry)),
    "fast": _fast_cell,
    "fraction": lambda number, entry: cells.fraction_cell(number.value(entry), entry.score.scored),
    "per_cent": lambda number, entry: cells.per_cent_cell(number.value(entry)),
    "share": _share_cell,
    "ratio": lambda number, entry: cells.ratio_cell(number.value(entry)),
    "speedup": lambda number, entry: cells.mean_cell(
        number.value(entry), number.interval(entry), entry.dominant
    ),
    "usd": lambda number, entry: cells.decimal_cell(number.value(entry), 2),
}


def cell_of(number: Number, entry: BoardRow) -> SafeString:
    """Return the cell of a number, which says so where nothing was timed."""
    if number.is_timed and not entry.score.is_timed:
        return cells.not_timed()
    return CELLS[number.cell](number, entry)


# Of what is timed, and of what is only checked.
DEFAULT_SORT, CHECKED_SORT = "fast1", "pass1"
_TRUSTS = tuple(Trust)
# Rows that say the same stand best first, and all keep the places that DEFAULT_SORT gives them.
WORDS = (
    Words(key="model", label="Model", value=lambda entry: entry.model.casefold()),
    Words(key="harness", label="Harness", value=lambda entry: entry.harness),
    Words(key="backends", label="Backends", value=lambda entry: " ".join(entry.backends) or None),
    Words(key="trust", label="Trust", value=lambda entry: _TRUSTS.index(entry.trust), falls=True),
    Words(key="date", label="Date", value=lambda entry: entry.date, falls=True),
)
# What of a problem's Outcomes a share goes by.
PAIRED_BY = {"pass1": "right", "passk": "right", "fast1": "fast", "fastk": "fast"}
WORDS_BY_KEY = {words.key: words for words in WORDS}
SORTED_BY = (*(number.key for number in COLUMNS), *WORDS_BY_KEY)
SORTS = tuple(f"{turn}{key}" for turn in ("", "-") for key in SORTED_BY)
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class RankedRow(NamedTuple):
    """Holds a row of a board. Rows that are not distinguishable share the number `tie_group`, and
    the `places` that their group holds."""

    place: str | None
    entry: BoardRow
    tie_group: int | None = None
    places: str | None = None

    @property
    def stands(self) -> str:
        """Return the place as pages show it: that of its group, if it has one."""
        return self.places or self.place or ""


def usual_sort(setting: Setting | None) -> str:
    """Return by what a board of this setting is sorted unless its address says so."""
    return DEFAULT_SORT if tells_times(setting) else CHECKED_SORT


def plain_at(column: Number, p: float) -> str:
    """Return the name of a column on the first page."""
    is_of_p = "₁" in column.label and p != USUAL_P
    return f"Over {p:g}× NCCL" if is_of_p else column.plain or label_at(column, p)


def label_at(column: Number, p: float) -> str:
    return column.label.replace("₁", f"{p:g}".translate(SUBSCRIPTS))


def cells_of(entry: BoardRow, columns: Iterable[Number] = COLUMNS) -> SafeString:
    return cells.joined(cell_of(column, entry) for column in columns)


def row_context(row: RankedRow, columns: Sequence[Number]) -> dict[str, object]:
    """Return a row as the page of a model shows it."""
    entry = row.entry
    return {
        **{name: getattr(entry, name) for name in ("model", "vendor", "harness", "url")},
        "date": entry.day,
        "place": row.stands,
        "claimed": entry.claimed,
        "withheld": entry.withheld,
        "trust": entry.trust,
        "trust_text": words(entry.trust),
        "cells": cells_of(entry, columns),
    }


def known_to_any(entries: Sequence[BoardRow]) -> list[Number]:
    """Return the columns that some row has a number in."""
    return [column for column in COLUMNS if any(column.value(e) is not None for e in entries)]


def placed(entries: Iterable[BoardRow], sort: str) -> list[RankedRow]:
    """Return the rows in order: baselines, people's, then what was judged of models, then claims;
    within each best first (of what a solved problem took, the least), or last first for `-key`.
    Only judged models hold places. Equal ones stand by pass@1, then by name."""
    key, turned = sort.removeprefix("-"), sort.startswith("-")
    words = WORDS_BY_KEY.get(key)
    column = BY_KEY[DEFAULT_SORT if words else key]
    named = sorted(entries, key=lambda entry: entry.model.casefold())
    rows = scores.in_order(named, lambda entry: entry.score.pass_at_1)
    baselines = [entry for entry in rows if entry.baseline and not entry.claimed]
    people = [entry for entry in rows if entry.by_people]
    ranked = [e for e in rows if not (e.baseline or e.claimed or e.by_people)]
    claims = [entry for entry in rows if entry.claimed]

    def ordered(group: list[BoardRow]) -> list[BoardRow]:
        if words is None:
            return scores.in_order(group, column.value, descending=column.falls != turned)
        return words.in_order(scores.in_order(group, column.value), turned=turned)

    shown = ordered(ranked)
    ties = _ties(shown, column, turned) if words is None else [None] * len(shown)
    places = scores.places([column.value(entry) for entry in shown], falls=column.falls)
    return [
        *(RankedRow(place=None, entry=entry) for entry in [*ordered(baselines), *ordered(people)]),
        *map(RankedRow, places, shown, ties, place_ranges(places, ties)),
        *(RankedRow(place=None, entry=entry) for entry in ordered(claims)),
    ]


def _ties(ordered: Sequence[BoardRow], column: Number, turned: bool) -> list[int | None]:
    """Return the tie group of each row; only shares have any."""
    if not column.is_share:
        return [None] * len(ordered)
    rows = [entry if column.value(entry) is not None else None for entry in ordered]
    tied = partial(is_tied, column)
    return tie_groups(rows[::-1], tied)[::-1] if turned else tie_groups(rows, tied)


def is_paired(column: Number, entry: BoardRow) -> bool:
    """Return True if this number of a row is compared with others problem by problem."""
    return _outcomes_of(column, entry) is not None


def _outcomes_of(column: Number, entry: BoardRow) -> Shares | None:
    name = PAIRED_BY.get(column.key)
    return getattr(entry.outcomes, name) if name and entry.outcomes else None


def is_tied(column: Number, better: BoardRow, other: BoardRow) -> bool:
    """Return True unless a row is surely better than another: on the problems that both were judged
    on or, where single problems are not known, by the intervals of the number."""
    one, two = _outcomes_of(column, better), _outcomes_of(column, other)
    if one is not None and two is not None:
        return not is_surely_better(one, two)
    intervals = column.interval(better), column.interval(other)
    return None not in intervals and overlap(*intervals)  # type: ignore[arg-type]
