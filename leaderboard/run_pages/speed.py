"""Shows how fast a run was: next to the reference, next to the hardware's limits, by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaderboard.delivery import cells
from leaderboard.kit.json_types import Report
from leaderboard.metrics.floors import FLOOR_WORDS
from leaderboard.metrics.verdicts import words
from leaderboard.run_pages.times import (
    CallTime,
    call_times,
    limiter_of,
    noise_word,
    times_single_calls,
)
from leaderboard.runs.reports import idle_share


def speed(report: Report) -> dict[str, object] | None:
    """Return the context of `_speed.html`; None where nothing was timed."""
    timing = report.get("timing")
    if not timing:
        return None
    low, high = timing["speedup_low"], timing["speedup_high"]
    return {
        "timing": timing,
        "noise": noise_word(timing).lower(),
        "distinguishable": not low <= 1.0 <= high,
        "samples": len(timing["kernel_bursts_us"]),
        "reference_samples": len(timing["baseline_bursts_us"]),
        "is_of_calls": times_single_calls(timing),
        "times": [_time_row(time) for time in call_times(report)],
        "idle": idle_share(report.get("timelines", ())),
        **bound(report.get("floors"), timing),
    }


def _time_row(time: CallTime) -> dict[str, object]:
    kernel_us, reference_us = time.kernel_us, time.baseline_us
    ratio = reference_us / kernel_us if kernel_us and reference_us else None
    made = (
        cells.decimal_cell(kernel_us, 2),
        cells.decimal_cell(reference_us, 2),
        cells.ratio_cell(ratio),
    )
    return {**time._asdict(), "cells": cells.joined(made)}


def bound(floors: Mapping[str, float] | None, timing: Report) -> dict[str, object]:
    """Return what each part of the hardware needs at least, as bars against the kernel's time. A
    host without a datasheet has none."""
    if not floors:
        return {"floors": None}
    limiter, kernel_us = limiter_of(floors), timing["kernel_us"]

    def row(code: str) -> dict[str, object]:
        us = floors[f"{code}_us"]
        share = 100 * us / kernel_us
        made = (cells.decimal_cell(us, 2), cells.decimal_cell(share))
        named = {"name": FLOOR_WORDS[code].name.capitalize(), "says": FLOOR_WORDS[code].means}
        drawn = {"cells": cells.joined(made), "width": f"{min(share, 100):.2f}"}
        return {**named, **drawn, "is_bound": code == limiter}

    return {
        "floors": [row(code) for code in FLOOR_WORDS],
        "utilisation": floors[f"{limiter}_us"] / kernel_us,
    }


def rank_facts(report: Report) -> dict[str, object] | None:
    """Return the context of `_ranks.html`: each rank's times, and what ran while profiled."""
    own_us = (report.get("timing") or {}).get("rank_us", ())
    profiled = {timeline["rank"]: timeline for timeline in report.get("timelines", ())}
    gpus = report.get("gpus", ())
    if not own_us and not profiled and not gpus:
        return None
    ranks = sorted({*range(len(own_us)), *profiled})
    return {
        "ranks": [_rank_row(rank, own_us, profiled.get(rank)) for rank in ranks],
        "has_times": bool(own_us),
        "is_profiled": bool(profiled),
        "skew": skew(own_us),
        "hidden": hidden(list(profiled.values())),
        "gpus": [_gpu_row(number, gpu) for number, gpu in enumerate(gpus)],
    }


def skew(own_us: Sequence[float]) -> dict[str, object] | None:
    """Return the slowest rank and how far it is behind the fastest, as a share."""
    if len(own_us) < 2 or min(own_us) <= 0:
        return None
    slowest = max(range(len(own_us)), key=lambda rank: own_us[rank])
    return {"slowest": slowest, "behind": own_us[slowest] / min(own_us) - 1}


def hidden(timelines: Sequence[Report]) -> float | None:
    """Return the share of communication that ran while something was computed, over all ranks."""
    communication_us = sum(timeline["communication_us"] for timeline in timelines)
    overlap_us = sum(timeline["overlap_us"] for timeline in timelines)
    return overlap_us / communication_us if communication_us > 0 else None


def _rank_row(rank: int, own_us: Sequence[float], timeline: Report | None) -> dict[str, object]:
    us = own_us[rank] if 0 <= rank < len(own_us) else None
    own = [
        cells.decimal_cell(us, 2),
        cells.share_cell(us / max(own_us) if us and max(own_us) > 0 else None),
    ]
    sums = ("span", "compute", "communication", "overlap", "unknown", "idle")
    told = [cells.decimal_cell(timeline[f"{name}_us"] if timeline else None) for name in sums]
    return {
        "rank": rank,
        "own": cells.joined(own if own_us else ()),
        "profiled": cells.joined(told),
    }


def _gpu_row(number: int, gpu: Report) -> dict[str, object]:
    made = (
        cells.count_cell(gpu["sm_mhz"]),
        cells.count_cell(gpu["memory_mhz"]),
        cells.count_cell(gpu["temperature_c"]),
        cells.decimal_cell(gpu["power_w"], 0),
    )
    reasons = ", ".join(words(reason) for reason in gpu["throttle_reasons"])
    return {
        "gpu": number,
        "name": gpu["name"],
        "cells": cells.joined(made),
        "throttle": reasons,
    }
