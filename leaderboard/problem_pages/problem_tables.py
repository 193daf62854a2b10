"""Makes the tables of a problem's page for its CSV. Rows are made as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaderboard.delivery.pages import Table
from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics.floors import Limits
from leaderboard.models import Problem
from leaderboard.problem_pages.problem_facts import SCREENED, floor_records, parameters
from leaderboard.read_model.baselines import ReferenceTimes, table_of
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.problem_results import (
    ATTEMPT_COLUMNS,
    KERNEL_COLUMNS,
    SubmissionRow,
    attempt_records,
    kernel_records,
    rows_of,
)

FACTS = ("floors", "baseline", "health", "signature", "tolerance")
PARAMETER_COLUMNS = ("name", "annotation", "default", "timed")
TOLERANCE_COLUMNS = ("dtype", "output", "atol", "rtol", "rms", "outliers")
HEALTH_COLUMNS = (
    *("answer", "honest", "profile", "accepted"),
    *(*(f"error_{dtype}" for dtype in SCREENED), "why"),
)


def rows_of_models(found: Problem, setting: Setting | None) -> list[SubmissionRow]:
    return [row for row in rows_of(found, setting) if not row.is_reference]


def results_table(found: Problem, setting: Setting | None, *, every: bool) -> Table:
    """Return the best kernel of each submission, or with `every` all attempts."""

    def rows() -> Iterator[list[object]]:
        own = rows_of_models(found, setting)
        for record in attempt_records(own) if every else kernel_records(own):
            yield [_flat(value) for value in record.values()]

    return Table(columns=ATTEMPT_COLUMNS if every else KERNEL_COLUMNS, rows=rows())


def facts_table(
    name: str, payload: JsonObject, limits: Limits, judged: Sequence[ReferenceTimes]
) -> Table:
    """Return the table of this name, one of FACTS."""
    if name == "baseline":
        return table_of(judged, payload)
    if name == "health":
        screened = payload["health"].values()
        rows = [_finding(found) for part in screened for found in part["findings"]]
        return Table(columns=HEALTH_COLUMNS, rows=rows)
    if name == "signature":
        return Table.of(PARAMETER_COLUMNS, parameters(payload))
    if name == "tolerance":
        return Table(columns=TOLERANCE_COLUMNS, rows=_tolerances(payload))
    records = floor_records(payload, limits)
    columns = tuple(records[0]) if records else ("size", "ranks")
    return Table(
        columns=("gpu", *columns),
        rows=[[limits.gpu, *(record[column] for column in columns)] for record in records],
    )


def _tolerances(payload: JsonObject) -> list[list[object]]:
    """Return a row by dtype, then of each output that has its own; of others `output` is empty."""
    by_output = {"": payload["tolerances"], **payload.get("output_tolerances", {})}
    return [
        [dtype, output, *map(limit.get, TOLERANCE_COLUMNS[2:])]
        for output, by_dtype in by_output.items()
        for dtype, limit in by_dtype.items()
    ]


def _finding(row: JsonObject) -> list[object]:
    errors = row.get("errors", {})
    said = [row[name] for name in ("answer", "honest", "profile", "accepted")]
    return [*said, *map(errors.get, SCREENED), row["why"]]


def _flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value
