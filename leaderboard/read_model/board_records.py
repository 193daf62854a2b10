"""Writes rows of a board to JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from leaderboard.metrics.board_numbers import COLUMNS, NUMBERS
from leaderboard.metrics.number import Number
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.columns import RankedRow


def _beside(number: Number) -> tuple[str, ...]:
    """Return the keys that a number has besides its column's."""
    if number.ends:
        return f"{number.key}_low", f"{number.key}_high"
    return (number.key,) if number.exported and not number.unit else ()


CSV_COLUMNS = (
    *("place", "tie_group", "model", "vendor", "harness", "backends", "trust", "claimed"),
    *("baseline", "unfiltered", "submission", "date", "scored"),
    *(key for number in NUMBERS for key in _beside(number)),
    *(number.key for number in COLUMNS),
)


def csv_rows(rows: Iterable[RankedRow]) -> Iterator[list[object]]:
    """Return the rows of the CSV by CSV_COLUMNS, each made when it is asked for."""
    return (list(_flat(as_record(row)).values()) for row in rows)


def _flat(record: dict[str, object]) -> dict[str, object]:
    names = record["backends"]
    return {**record, "backends": " ".join(names) if isinstance(names, list) else names}


def as_record(row: RankedRow) -> dict[str, object]:
    """Return a row of the JSON form; keys are CSV_COLUMNS."""
    entry = row.entry
    return {
        "place": row.place,
        "tie_group": row.tie_group,
        **{name: getattr(entry, name) for name in ("model", "vendor", "harness")},
        "backends": list(entry.backends),
        **{name: getattr(entry, name) for name in ("trust", "claimed", "baseline", "unfiltered")},
        "submission": entry.submission,
        "date": entry.date,
        "scored": entry.score.scored,
        **{key: value for number in NUMBERS for key, value in _values_beside(number, entry)},
        **{number.key: number.value(entry) for number in COLUMNS},
    }


def _values_beside(number: Number, entry: BoardRow) -> Iterator[tuple[str, float | None]]:
    found = (number.interval(entry) or (None, None)) if number.ends else (number.value(entry),)
    return zip(_beside(number), found, strict=False)
