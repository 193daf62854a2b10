"""Writes rows of a board to JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from leaderboard.metrics.intervals import Interval
from leaderboard.read_model.columns import BY_KEY, COLUMNS, RankedRow, interval_of

CSV_COLUMNS = (
    "place", "tie_group", "model", "vendor", "harness", "backends", "trust", "claimed", "baseline",
    "submission", "date", "scored", "pass1_low", "pass1_high", "p", "fast1_low", "fast1_high",
    "fast1_likely", "speedup_low", "speedup_high", "credit_low", "credit_high", "idle", *BY_KEY,
)  # fmt: skip


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
        **{name: getattr(entry, name) for name in ("trust", "claimed", "baseline", "submission")},
        "date": entry.date,
        "scored": entry.score.scored,
        **_ends("pass1", entry.score.pass_at_1_interval),
        "p": entry.score.p,
        **_ends("fast1", interval_of(entry.score.fast_at_1, entry)),
        "fast1_likely": entry.score.likely_fast_at_1,
        **_ends("speedup", entry.speedup_interval),
        **_ends("credit", interval_of(entry.credit, entry)),
        "idle": entry.idle,
        **{column.key: column.value(entry) for column in COLUMNS},
    }


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}
