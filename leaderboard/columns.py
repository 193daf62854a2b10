"""The numbers of a board: how each is named, sorted, drawn and written to CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from leaderboard import cells, scores
from leaderboard.boards import Entry


@dataclass(frozen=True, kw_only=True)
class Column:
    key: str
    label: str
    unit: str
    value: Callable[[Entry], float | None]
    cell: Callable[[Entry], SafeString]


COLUMNS = (
    Column(
        key="k",
        label="k",
        unit="samples",
        value=lambda entry: entry.score.k,
        cell=lambda entry: cells.count_cell(entry.score.k),
    ),
    Column(
        key="correct",
        label="Correct",
        unit="problems",
        value=lambda entry: entry.score.correct,
        cell=lambda entry: cells.fraction_cell(entry.score.correct, entry.score.scored),
    ),
    Column(
        key="pass1",
        label="pass@1",
        unit="%",
        value=lambda entry: entry.score.pass_at_1,
        cell=lambda entry: cells.share_cell(entry.score.pass_at_1, entry.score.pass_at_1_interval),
    ),
    Column(
        key="passk",
        label="pass@k",
        unit="%",
        value=lambda entry: entry.score.pass_at_k,
        cell=lambda entry: cells.share_cell(entry.score.pass_at_k),
    ),
    Column(
        key="fast1",
        label="fast₁@1",
        unit="%",
        value=lambda entry: entry.score.fast_at_1,
        cell=lambda entry: cells.share_cell(entry.score.fast_at_1),
    ),
    Column(
        key="fastk",
        label="fast₁@k",
        unit="%",
        value=lambda entry: entry.score.fast_at_k,
        cell=lambda entry: cells.share_cell(entry.score.fast_at_k),
    ),
    Column(
        key="speedup",
        label="Speedup",
        unit="geo. mean",
        value=lambda entry: entry.score.geometric_mean,
        cell=lambda entry: cells.ratio_cell(entry.score.geometric_mean),
    ),
    Column(
        key="attempted",
        label="Attempted",
        unit="problems",
        value=lambda entry: entry.score.attempted,
        cell=lambda entry: cells.fraction_cell(entry.score.attempted, entry.score.scored),
    ),
)
BY_KEY = {column.key: column for column in COLUMNS}
DEFAULT_SORT = "fast1"
SORTS = tuple(BY_KEY) + tuple(f"-{key}" for key in BY_KEY)
CSV_COLUMNS = (
    "place", "model", "vendor", "harness", "trust", "claimed", "submission", "date",
    "scored", "pass1_low", "pass1_high", *BY_KEY,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Placed:
    place: str | None
    entry: Entry


def cells_of(entry: Entry) -> SafeString:
    return cells.joined(column.cell(entry) for column in COLUMNS)


def placed(entries: Iterable[Entry], sort: str) -> list[Placed]:
    """Best first, or last first for `-key`. A claim holds no place but stands among the others."""
    value = BY_KEY[sort.removeprefix("-")].value
    rows = list(entries)
    judged = [entry for entry in rows if not entry.claimed]
    found = scores.places([value(entry) for entry in judged])
    place_of = {id(entry): place for entry, place in zip(judged, found, strict=True)}
    ordered = scores.in_order(rows, value, descending=not sort.startswith("-"))
    return [Placed(place=place_of.get(id(entry)), entry=entry) for entry in ordered]


def csv_rows(rows: Sequence[Placed]) -> list[list[object]]:
    return [list(as_record(row).values()) for row in rows]


def as_record(row: Placed) -> dict[str, object]:
    """A row of the JSON twin; keys are CSV_COLUMNS."""
    entry, interval = row.entry, row.entry.score.pass_at_1_interval
    return {
        "place": row.place,
        "model": entry.model,
        "vendor": entry.vendor,
        "harness": entry.harness,
        "trust": entry.trust,
        "claimed": entry.claimed,
        "submission": entry.submission,
        "date": entry.date.isoformat() if entry.date else None,
        "scored": entry.score.scored,
        "pass1_low": interval.low if interval else None,
        "pass1_high": interval.high if interval else None,
        **{column.key: column.value(entry) for column in COLUMNS},
    }
