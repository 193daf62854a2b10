"""Makes rows of a problem's page, of kernels and of attempts, as keys of what was rendered once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leaderboard.delivery import cells
from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics import scores
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.metrics.verdicts import state, verdict_words, words
from leaderboard.read_model.problem_results import ATTEMPT_COLUMNS, SubmissionRow, kernel_record


class KernelRow(NamedTuple):
    """Holds a kernel of the table; `how` tells its submission from others of its model."""

    place: str
    row: SubmissionRow
    how: str
    tail: str

    @property
    def context(self) -> dict[str, object]:
        return _kernel_row(self)


class AttemptRow(NamedTuple):
    """Holds an attempt of the table; `values` are of ATTEMPT_COLUMNS. Times are `shown` where
    kernels are timed."""

    values: tuple[object, ...]
    how: str
    tail: str
    withheld: bool
    shown: bool

    @property
    def context(self) -> dict[str, object]:
        record = dict(zip(ATTEMPT_COLUMNS, self.values, strict=True))
        row = _attempt_row(record, self.tail, self.shown)
        return {**row, "how": self.how, "withheld": self.withheld}


def told_apart_by_number(rows: Sequence[SubmissionRow]) -> dict[int, str]:
    """Return what tells each submission from others of its model, by its number."""
    apart = told_apart([row.submitted for row in rows])
    return dict(zip((row.submission_id for row in rows), apart, strict=True))


def kernel_rows(rows: Sequence[SubmissionRow], most: int | None, tail: str) -> list[KernelRow]:
    """Return the best kernels placed by their own time; above them the reference, without a
    place."""
    solved = [row for row in rows if row.best_run_id is not None]
    models = [row for row in solved if not row.is_reference]
    places = scores.places([row.best_run__kernel_us for row in models], falls=False)
    references = [(row, None) for row in solved if row.is_reference]
    shown = [*references, *list(zip(models, places, strict=True))[:most]]
    how = told_apart_by_number(rows)
    return [
        KernelRow(place or "", _hashable(row), how[row.submission_id], tail) for row, place in shown
    ]


def _hashable(row: SubmissionRow) -> SubmissionRow:
    """Return a row without its attempts, which the table does not show, so that it can be a cache
    key."""
    return row._replace(attempts=(), best_run__mechanisms=tuple(row.best_run__mechanisms or ()))


def _kernel_row(shown: KernelRow) -> dict[str, object]:
    record = kernel_record(shown.row)
    numbers = [
        cells.time_cell(record["kernel_us"]),
        cells.time_cell(record["baseline_us"]),
        cells.interval_cell(record["speedup"], record["speedup_low"], record["speedup_high"]),
        cells.share_cell(record["utilisation"]),
    ]
    return {
        **_linked(record, shown.tail),
        "place": shown.place,
        "how": shown.how,
        "is_reference": shown.row.is_reference,
        "withheld": shown.row.submission__withholds_source,
        "cells": cells.joined(numbers if record["speedup"] else ()),
    }


def attempt_rows(
    records: Iterable[JsonObject], rows: Sequence[SubmissionRow], tail: str, *, is_timed: bool
) -> list[AttemptRow]:
    """Return rows of attempts; `rows` are those of their submissions."""
    how = told_apart_by_number(rows)
    withholding = {row.submission_id for row in rows if row.submission__withholds_source}
    return [
        AttemptRow(
            values=tuple(map(_fixed, record.values())),
            how=how[record["submission"]],
            tail=tail,
            withheld=record["submission"] in withholding,
            shown=is_timed,
        )
        for record in records
    ]


def _fixed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _attempt_row(record: JsonObject, tail: str, shown: bool) -> dict[str, object]:
    is_checked = record["verdict"] == "ok" and record["speedup"] is None
    speedup = cells.not_timed() if is_checked else cells.ratio_cell(record["speedup"])
    times = (cells.time_cell(record["kernel_us"]), cells.time_cell(record["baseline_us"]))
    made = (*(times if shown else ()), speedup, cells.share_cell(record["utilisation"]))
    return {
        **_linked(record, tail),
        "number": cells.count_cell(record["attempt"]),
        "cells": cells.joined(made),
    }


def _linked(record: JsonObject, tail: str) -> dict[str, object]:
    return {
        **{name: record[name] for name in ("model", "backend", "attempt")},
        "mechanisms": [words(tag) for tag in record["mechanisms"]],
        "verdict": verdict_words(record["verdict"], is_timed=record["speedup"] is not None),
        "state": state(record["verdict"]),
        "submission_url": url("submission", record["submission"]) + tail,
        "run_url": url("run", record["run"]),
        "kernel_url": kernel_at(record["kernel"], record["run"]),
        "digest": record["kernel"],
    }
