"""Runs as pandas frames: for export, and to prove the summary right by another way.

A web worker never loads this module.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from leaderboard.models import Run, Summary
from leaderboard.models.runs import SETTING

NAMES = {
    "kernel__submission_id": "submission_id",
    "kernel__problem_id": "problem_id",
    "kernel__attempt": "attempt",
    "kernel__step": "step",
}
PLACE = ["submission_id", "problem_id", *SETTING]
FACTS = ["made", "correct", "best_speedup"]


def counted_runs() -> pd.DataFrame:
    """One row a run that says something about its kernel."""
    columns = [*NAMES, "id", "finished_at", "verdict", "speedup", *SETTING]
    return _frame(Run.objects.counted().values_list(*columns), columns).rename(columns=NAMES)


def summarised() -> pd.DataFrame:
    """What the summary should hold: PLACE as index, FACTS as columns."""
    runs = counted_runs()
    runs["id"] = runs["id"].astype(str)
    newest = runs.sort_values(["step", "finished_at", "id"])
    attempts = newest.drop_duplicates([*PLACE, "attempt"], keep="last")
    attempts = attempts.assign(
        correct=attempts["verdict"].eq("ok"),
        best_speedup=attempts["speedup"].where(attempts["verdict"].eq("ok")).astype(float),
    )
    return attempts.groupby(PLACE).agg(
        made=("attempt", "size"), correct=("correct", "sum"), best_speedup=("best_speedup", "max")
    )


def stored() -> pd.DataFrame:
    """What the summary does hold, in the shape of `summarised`."""
    columns = [*PLACE, *FACTS]
    frame = _frame(Summary.objects.values_list(*columns), columns).set_index(PLACE)
    return frame.astype({"best_speedup": float})


def differences() -> list[str]:
    """A line for each row that is missing, surplus or wrong."""
    both = summarised().join(stored(), how="outer", suffixes=("_expected", "_found"))
    wrong = []
    for place, row in both.iterrows():
        expected = [_plain(row[f"{name}_expected"]) for name in FACTS]
        found = [_plain(row[f"{name}_found"]) for name in FACTS]
        if expected != found:
            wrong.append(f"{place}: expected {expected}, found {found}")
    return wrong


def _frame(rows: Any, columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame.from_records(list(rows), columns=columns)


def _plain(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
