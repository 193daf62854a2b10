"""The tables of a run's page as its CSV gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from leaderboard.delivery.pages import Table
from leaderboard.metrics.floors import FLOOR_WORDS

Report = Mapping[str, Any]
Rows = Iterator[list[object]]
CHECK_COLUMNS = ("trial", "rank", "output", "verdict", "elements", "mismatched", "max_error")
BURST_COLUMNS = ("burst", "kernel_us", "baseline_us")
LIMIT_COLUMNS = ("limit", "us")
SUMS = (
    *("span_us", "compute_us", "communication_us", "overlap_us", "unknown_us", "idle_us"),
    *("graph_launches", "dropped_events"),
)
RANK_COLUMNS = ("rank", "call_us", *SUMS)
GPU_STATE = ("name", "sm_mhz", "memory_mhz", "temperature_c", "power_w")
GPU_COLUMNS = ("gpu", *GPU_STATE, "throttle_reasons")
MECHANISM_COLUMNS = ("tag", "evidence", "detail")


def run_table(name: str, report: Report) -> Table:
    """One of TABLES, or without a name every output of every rank in every trial."""
    columns, rows = TABLES.get(name, (CHECK_COLUMNS, check_rows))
    return Table(columns=columns, rows=rows(report))


def check_rows(report: Report) -> Rows:
    for trial in report["trials"]:
        for check in trial["checks"]:
            yield [trial["trial"], *(check[name] for name in CHECK_COLUMNS[1:])]


def burst_rows(report: Report) -> Rows:
    timing = report.get("timing")
    if timing:
        pairs = zip_longest(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
        for number, pair in enumerate(pairs, start=1):
            yield [number, *pair]


def limit_rows(report: Report) -> Rows:
    """Least times that the hardware allows. A host without a datasheet has none."""
    floors = report.get("floors")
    if floors:
        yield from ([name, floors[f"{name}_us"]] for name in FLOOR_WORDS)


def rank_rows(report: Report) -> Rows:
    own_us = (report.get("timing") or {}).get("rank_us", ())
    profiled = {timeline["rank"]: timeline for timeline in report.get("timelines", ())}
    for rank in sorted({*range(len(own_us)), *profiled}):
        timeline = profiled.get(rank, {})
        us = own_us[rank] if rank < len(own_us) else None
        yield [rank, us, *(timeline.get(name) for name in SUMS)]


def gpu_rows(report: Report) -> Rows:
    for number, gpu in enumerate(report.get("gpus", ())):
        yield [number, *(gpu[name] for name in GPU_STATE), " ".join(gpu["throttle_reasons"])]


def mechanism_rows(report: Report) -> Rows:
    for found in report.get("mechanisms", ()):
        yield [found[name] for name in MECHANISM_COLUMNS]


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Report], Rows]]] = {
    "bursts": (BURST_COLUMNS, burst_rows),
    "limits": (LIMIT_COLUMNS, limit_rows),
    "ranks": (RANK_COLUMNS, rank_rows),
    "gpus": (GPU_COLUMNS, gpu_rows),
    "mechanisms": (MECHANISM_COLUMNS, mechanism_rows),
}
