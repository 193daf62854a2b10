"""Shows how fast a run was: next to the reference, next to the hardware's limits, by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaderboard.delivery import cells
from leaderboard.kit.json_types import Report
from leaderboard.metrics.floors import FLOOR_WORDS, LIMITER_WORDS
from leaderboard.metrics.verdicts import words
from leaderboard.runs.reports import idle_share

# The three times of a side since judge 10: the field of a report, the name, how it is measured.
THREE_TIMES = (
    ("answer_us", "Time to answer", "The score: from readable inputs to committed outputs."),
    ("call_us", "Call time", "Nothing is queued ahead, so the host's Python and launches count."),
    ("series_us", "Back to back", "A call among several that are queued behind one gate."),
)
SCORED = "answer_us"


def speed(report: Report) -> dict[str, object] | None:
    """Return the context of `_speed.html`; None where nothing was timed."""
    timing = report.get("timing")
    if not timing:
        return None
    low, high = timing["speedup_low"], timing["speedup_high"]
    return {
        "timing": timing,
        "distinguishable": not low <= 1.0 <= high,
        "samples": len(timing["kernel_bursts_us"]),
        "reference_samples": len(timing["baseline_bursts_us"]),
        "times": [_time_row(name, us) for name, us in three_times(timing).items()],
        "own_ratio": own_ratio(timing),
        "idle": idle_share(report.get("timelines", ())),
        **bound(report.get("floors"), timing),
    }


def times_single_calls(timing: Report) -> bool:
    """Return whether a timing is of single calls, as since judge 10; before, it was of batches."""
    return bool(timing.get("kernel"))


def three_times(timing: Report) -> dict[str, tuple[float, float]]:
    """Return the kernel's and the reference's time by the names of THREE_TIMES, those that were
    measured; none of a judge up to 9."""
    if not times_single_calls(timing):
        return {}
    kernel, reference = timing["kernel"], timing["baseline"]
    both = {name: (kernel[name], reference[name]) for name, *_ in THREE_TIMES}
    return {name: pair for name, pair in both.items() if None not in pair}


def _time_row(name: str, us: tuple[float, float]) -> dict[str, object]:
    title, says = next(words for own, *words in THREE_TIMES if own == name)
    kernel_us, reference_us = us
    made = (
        cells.decimal_cell(kernel_us, 2),
        cells.decimal_cell(reference_us, 2),
        cells.ratio_cell(reference_us / kernel_us),
    )
    return {"name": title, "says": says, "cells": cells.joined(made), "is_score": name == SCORED}


def own_ratio(timing: Report) -> float | None:
    """Return the speedup that PKB's own harness would report, from times that ranks tell."""
    kernel_us, baseline_us = timing.get("kernel_events_us"), timing.get("baseline_events_us")
    return baseline_us / kernel_us if kernel_us and baseline_us else None


def bound(floors: Mapping[str, float] | None, timing: Report) -> dict[str, object]:
    """Return the floors as bars against what was measured. A host without a datasheet has none."""
    if not floors:
        return {"floors": None}
    least_us = {name: floors[f"{name}_us"] for name in FLOOR_WORDS}
    limiter = max(least_us, key=lambda name: least_us[name])
    kernel_us, baseline_us = timing["kernel_us"], timing["baseline_us"]
    longest_us = max(kernel_us, baseline_us, *least_us.values())

    def row(name: str, says: str, us: float, **marks: bool) -> dict[str, object]:
        made = (cells.decimal_cell(us, 2), cells.decimal_cell(100 * us / kernel_us))
        width = f"{100 * us / longest_us:.2f}"
        shown = {"name": name, "says": says, "cells": cells.joined(made), "width": width}
        return {**shown, "is_bound": False, "measured": False, **marks}

    rows = [
        row(words.name.capitalize(), words.means, least_us[code], is_bound=code == limiter)
        for code, words in FLOOR_WORDS.items()
    ]
    rows.append(row("Kernel", "Measured.", kernel_us, measured=True))
    rows.append(row("Reference", "Measured.", baseline_us, measured=True))
    return {
        "floors": rows,
        "bound_us": least_us[limiter],
        "limiter": LIMITER_WORDS[limiter],
        "utilisation": least_us[limiter] / kernel_us,
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
