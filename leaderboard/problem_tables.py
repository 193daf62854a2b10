"""The tables of a problem's page as its CSV gives them. Rows are made as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leaderboard.boards import Setting
from leaderboard.floors import Limits
from leaderboard.models import Problem
from leaderboard.pages import Table
from leaderboard.problem_facts import error_of, floor_records, gpu_of
from leaderboard.problem_results import (
    ATTEMPT_COLUMNS,
    KERNEL_COLUMNS,
    Row,
    attempt_records,
    kernel_records,
    rows_of,
)

FACTS = ("floors", "baseline", "health")
BASELINE_COLUMNS = (
    *("gpu", "size", "dtype", "ranks", "median_us", "low_us", "high_us", "error", "peak_mib"),
    *("measured", "torch", "nccl", "current"),
)
HEALTH_COLUMNS = (
    *("answer", "honest", "profile", "accepted", "error_float32", "error_bfloat16", "why"),
)


def rows_of_models(found: Problem, setting: Setting | None) -> list[Row]:
    return [row for row in rows_of(found, setting) if not row.is_reference]


def results_table(found: Problem, setting: Setting | None, *, every: bool) -> Table:
    """The best kernel of each submission, or with `every` all attempts."""

    def rows() -> Iterator[list[object]]:
        own = rows_of_models(found, setting)
        for record in attempt_records(own) if every else kernel_records(own):
            yield [_flat(value) for value in record.values()]

    return Table(columns=ATTEMPT_COLUMNS if every else KERNEL_COLUMNS, rows=rows())


def facts_table(name: str, payload: Mapping[str, Any], limits: Limits) -> Table:
    """One of FACTS."""
    if name == "baseline":
        rows = [_baseline(row) for row in payload["baselines"]]
        return Table(columns=BASELINE_COLUMNS, rows=rows)
    if name == "health":
        screened = payload["health"].values()
        rows = [_finding(found) for part in screened for found in part["findings"]]
        return Table(columns=HEALTH_COLUMNS, rows=rows)
    records = floor_records(payload, limits)
    columns = tuple(records[0]) if records else ("size", "ranks")
    return Table(
        columns=("gpu", *columns),
        rows=[[limits.gpu, *(record[column] for column in columns)] for record in records],
    )


def _baseline(row: Mapping[str, Any]) -> list[object]:
    how = [gpu_of(row), row["size"], row["dtype"], row["world_size"]]
    what = [row[name] for name in ("measured", "torch", "nccl", "current")]
    return [*how, row["us"], *row["quartiles_us"], error_of(row), row["peak_mib"], *what]


def _finding(row: Mapping[str, Any]) -> list[object]:
    errors = row.get("errors", {})
    said = [row[name] for name in ("answer", "honest", "profile", "accepted")]
    return [*said, errors.get("float32"), errors.get("bfloat16"), row["why"]]


def _flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value
