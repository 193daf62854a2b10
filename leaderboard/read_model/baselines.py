"""Reads the reference's times: beside kernels, as the judge timed it, and alone, by an older
method.

Wall time of a call is longer than what CUDA events see of it, so the two are never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson
from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Table
from leaderboard.kit.json_types import JsonObject
from leaderboard.metrics.floors import DTYPE, Limits, limits_of
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.problem_results import SettingTotals
from problems.topology import gpu_called

COLUMNS = (
    *("timed_by", "hardware", "gpu", "size", "dtype", "ranks", "profile", "judge_version", "runs"),
    *("median_us", "low_us", "high_us", "error", "peak_mib"),
    *("measured", "torch", "nccl", "method", "current"),
)


class ReferenceTimes(NamedTuple):
    """Holds the reference's time beside `runs` correct kernels of a problem in one setting, in
    microseconds: of each submission the median, and of these the median and the quartiles."""

    setting: Setting
    hardware: str
    runs: int
    us: float
    low_us: float
    high_us: float

    @property
    def cells(self) -> SafeString:
        numbers = (self.us, self.low_us, self.high_us)
        counts = (cells.count_cell(self.setting.world_size), cells.count_cell(self.runs))
        return cells.joined((*map(cells.decimal_cell, numbers), *counts))

    @property
    def record(self) -> dict[str, object]:
        times = {"median_us": self.us, "low_us": self.low_us, "high_us": self.high_us}
        return {**vars(self.setting), "runs": self.runs, **times}


class Baselines(NamedTuple):
    """Holds what a problem's page draws the section of baselines from: the problem's payload as it
    is stored, and times by the judge, those of the page's setting `here` first."""

    payload: str
    judged: tuple[ReferenceTimes, ...]
    here: Setting | None

    @property
    def told(self) -> dict[str, object]:
        """Return what was measured alone: `latency_bound_reason`, rows `alone`, and `methods`."""
        payload = orjson.loads(self.payload)
        rows = payload["baselines"]
        return {
            "latency_bound_reason": payload["latency_bound_reason"],
            "alone": [row_alone(row) for row in rows],
            "methods": sorted({method_of(row) for row in rows} - {""}),
        }


def reference_times(
    stood: Sequence[SettingTotals], here: Setting | None
) -> tuple[ReferenceTimes, ...]:
    """Return the times in every setting where something was timed; that of the page first."""
    found = []
    for one in stood:
        times = (one.baseline_us, one.baseline_low_us, one.baseline_high_us)
        us, low_us, high_us = (round(time or 0.0, 3) for time in times)
        if us:
            title, runs = one.hardware__title, one.baseline_runs
            found.append(ReferenceTimes(one.setting, title, runs, us, low_us, high_us))
    return tuple(sorted(found, key=lambda one: one.setting != here))


def times_alone(payload: JsonObject, limits: Limits) -> dict[tuple[str, int], float]:
    """Return the microseconds that the reference took alone on this GPU, by size and ranks."""
    return {
        (row["size"], row["world_size"]): row["us"]
        for row in payload["baselines"]
        if row["dtype"] == DTYPE and limits_of(gpu_of(row)) is limits
    }


def gpu_of(alone: JsonObject) -> str:
    """Return `NVIDIA H200`, of a line with its driver and clock."""
    return str(alone["gpus"][0].split(",")[0])


def error_of(alone: JsonObject) -> float | None:
    """Return the error of the reference's own answer on hardened inputs, in tolerances."""
    found: float | None = alone["errors"].get(f"hardened {alone['dtype']}")
    return found


def method_of(alone: JsonObject) -> str:
    """Return how it was timed, without the name of the program before it."""
    return str(alone.get("method", "")).rpartition(": ")[2]


def row_alone(alone: JsonObject) -> dict[str, object]:
    low_us, high_us = alone["quartiles_us"]
    error = error_of(alone)
    numbers = [
        cells.count_cell(alone["world_size"]),
        *(cells.decimal_cell(us) for us in (alone["us"], low_us, high_us)),
        cells.decimal_cell(error, 2),
        cells.bytes_cell(alone["peak_mib"] * (1 << 20)),
    ]
    return {
        "gpu": gpu_of(alone),
        "setting": f"{alone['size']}, {alone['dtype']}",
        "measured": alone["measured"],
        "versions": f"torch {alone['torch']}, NCCL {alone['nccl']}",
        "current": alone["current"],
        "cells": cells.joined(numbers),
    }


def table_of(judged: Sequence[ReferenceTimes], payload: JsonObject) -> Table:
    """Return the CSV: what the judge timed, then what was measured alone."""
    rows = [*map(_judged_values, judged), *map(_alone_values, payload["baselines"])]
    return Table(columns=COLUMNS, rows=rows)


def _judged_values(one: ReferenceTimes) -> list[object]:
    setting = one.setting
    where = [setting.hardware_id, gpu_called(one.hardware), setting.size, setting.dtype]
    how = [setting.world_size, setting.profile, setting.judge_version]
    times = [one.runs, one.us, one.low_us, one.high_us]
    return ["judge", *where, *how, *times, *[None] * 6, True]


def _alone_values(row: JsonObject) -> list[object]:
    where = [row["hardware"], gpu_of(row), row["size"], row["dtype"], row["world_size"]]
    found = [row["us"], *row["quartiles_us"], error_of(row), row["peak_mib"]]
    what = [*(row[name] for name in ("measured", "torch", "nccl")), method_of(row), row["current"]]
    return ["alone", *where, None, None, None, *found, *what]
