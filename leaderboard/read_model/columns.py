"""Defines the numbers of a board: how each is named, sorted, drawn and written to CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.metrics import scores
from leaderboard.metrics.intervals import Interval, wilson_interval
from leaderboard.metrics.ties import tie_groups
from leaderboard.models import Trust
from leaderboard.read_model.boards import BoardRow, Setting
from leaderboard.read_model.setting import tells_times


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """Describes a number of a board. `group` is the head it stands under; `is_share` says that
    values are shares of the scored problems, which have intervals and so tie groups; `falls` that
    the greatest comes first."""

    key: str
    label: str
    unit: str
    group: str
    value: Callable[[BoardRow], float | None]
    cell: Callable[[BoardRow], SafeString]
    is_share: bool = False
    falls: bool = True


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


def interval_of(share: float | None, entry: BoardRow) -> Interval | None:
    return None if share is None else wilson_interval(share, entry.score.scored)


def _timed(cell: Callable[[BoardRow], SafeString]) -> Callable[[BoardRow], SafeString]:
    """Make a cell of a column of speed, which says so where nothing was timed."""
    return lambda entry: cell(entry) if entry.score.is_timed else cells.NOT_TIMED


def _fast_cell(entry: BoardRow) -> SafeString:
    score = entry.score
    return cells.fast_cell(
        score.fast_at_1,
        interval_of(score.fast_at_1, entry),
        score.likely_fast_at_1,
        score.likely_faster - score.faster,
    )


def _speedup_cell(entry: BoardRow) -> SafeString:
    return cells.interval_cell(
        entry.score.geometric_mean, *(entry.speedup_interval or (None, None))
    )


def _credit_cell(entry: BoardRow) -> SafeString:
    """Return the credit, and below it the share of the profiled time that was idle."""
    cell = cells.share_cell(entry.credit, interval_of(entry.credit, entry))
    if entry.credit is None or entry.idle is None:
        return cell
    below = f'<small class="range">{cells.share_text(entry.idle)} idle</small></td>'
    return SafeString(f"{cell.removesuffix('</td>')}{below}")


COLUMNS = (
    Column(
        key="fast1",
        label="fast₁@1",
        unit="%",
        group="fast",
        value=lambda entry: entry.score.fast_at_1,
        cell=_timed(_fast_cell),
        is_share=True,
    ),
    Column(
        key="fastk",
        label="fast₁@k",
        unit="%",
        group="fast",
        value=lambda entry: entry.score.fast_at_k,
        cell=_timed(lambda entry: cells.share_cell(entry.score.fast_at_k)),
        is_share=True,
    ),
    Column(
        key="speedup",
        label="Speedup",
        unit="geo. mean",
        group="fast",
        value=lambda entry: entry.score.geometric_mean,
        cell=_timed(_speedup_cell),
    ),
    Column(
        key="credit",
        label="Roofline credit",
        unit="%",
        group="fast",
        value=lambda entry: entry.credit,
        cell=_timed(_credit_cell),
        is_share=True,
    ),
    Column(
        key="utilisation",
        label="Of roofline",
        unit="%, median",
        group="fast",
        value=lambda entry: entry.utilisation,
        cell=_timed(lambda entry: cells.per_cent_cell(entry.utilisation)),
    ),
    Column(
        key="pass1",
        label="pass@1",
        unit="%",
        group="right",
        value=lambda entry: entry.score.pass_at_1,
        cell=lambda entry: cells.share_cell(entry.score.pass_at_1, entry.score.pass_at_1_interval),
        is_share=True,
    ),
    Column(
        key="passk",
        label="pass@k",
        unit="%",
        group="right",
        value=lambda entry: entry.score.pass_at_k,
        cell=lambda entry: cells.share_cell(entry.score.pass_at_k),
        is_share=True,
    ),
    Column(
        key="correct",
        label="Correct",
        unit="problems",
        group="right",
        value=lambda entry: entry.score.correct,
        cell=lambda entry: cells.fraction_cell(entry.score.correct, entry.score.scored),
    ),
    Column(
        key="attempted",
        label="Judged",
        unit="problems",
        group="right",
        value=lambda entry: entry.score.attempted,
        cell=lambda entry: cells.fraction_cell(entry.score.attempted, entry.score.scored),
    ),
    Column(
        key="k",
        label="k",
        unit="samples",
        group="how",
        value=lambda entry: entry.score.k,
        cell=lambda entry: cells.count_cell(entry.score.k),
    ),
    Column(
        key="cost",
        label="Cost",
        unit="US$",
        group="how",
        value=lambda entry: entry.cost_usd,
        cell=lambda entry: cells.decimal_cell(entry.cost_usd, 2),
    ),
    Column(
        key="solved_tokens",
        label="Output",
        unit="tokens a solved problem",
        group="how",
        value=lambda entry: entry.tokens_per_solved,
        cell=lambda entry: cells.count_cell(entry.tokens_per_solved),
        falls=False,
    ),
    Column(
        key="solved_usd",
        label="Cost",
        unit="US$ a solved problem",
        group="how",
        value=lambda entry: entry.usd_per_solved,
        cell=lambda entry: cells.decimal_cell(entry.usd_per_solved, 2),
        falls=False,
    ),
)
# Of what a solved problem took.
SOLVED = ("solved_tokens", "solved_usd")
BY_KEY = {column.key: column for column in COLUMNS}
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
WORDS_BY_KEY = {words.key: words for words in WORDS}
SORTS = tuple(f"{turn}{key}" for turn in ("", "-") for key in (*BY_KEY, *WORDS_BY_KEY))
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class RankedRow(NamedTuple):
    """Holds a row of a board. Rows that are not distinguishable share the number `tie_group`."""

    place: str | None
    entry: BoardRow
    tie_group: int | None = None


def usual_sort(setting: Setting | None) -> str:
    """Return by what a board of this setting is sorted unless its address says so."""
    return DEFAULT_SORT if tells_times(setting) else CHECKED_SORT


def label_at(column: Column, p: float) -> str:
    return column.label.replace("₁", f"{p:g}".translate(SUBSCRIPTS))


def cells_of(entry: BoardRow, columns: Iterable[Column] = COLUMNS) -> SafeString:
    return cells.joined(column.cell(entry) for column in columns)


def known_to_any(entries: Sequence[BoardRow]) -> list[Column]:
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
        *map(RankedRow._make, zip(places, shown, ties, strict=True)),
        *(RankedRow(place=None, entry=entry) for entry in ordered(claims)),
    ]


def _ties(ordered: Sequence[BoardRow], column: Column, turned: bool) -> list[int | None]:
    """Return the tie group of each row; only shares have any."""
    if not column.is_share:
        return [None] * len(ordered)
    intervals = [interval_of(column.value(entry), entry) for entry in ordered]
    return tie_groups(intervals[::-1])[::-1] if turned else tie_groups(intervals)
