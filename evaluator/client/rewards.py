"""Turns a judgement's report into a reward: pure functions, each from 0 to 1 or None.

None means "no reward": leave the sample out. A fault of ours is never 0, and what was not measured
is None. Every function takes the report of a result, as docs/python.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

Report = Mapping[str, Any]
Reward = Callable[[Report], Optional[float]]

# No word about the kernel: it could not be judged, or was not taken.
OURS = ("infra_error", "host_unsupported", "cancelled", "refused", "lost")
BUILD = ("build_error", "import_error", "missing_entry_point")
# Honest kernels have these, too.
HARMLESS = ("static:side-stream", "static:cuda-graph")
TRIALS = 6
ENOUGH = 4.0  # times as fast as the reference, which no longer gives more


def is_judged(report: Report) -> bool:
    """Return True if the verdict says something about the kernel."""
    return report["verdict"] not in OURS


def suspicious(report: Report) -> tuple[str, ...]:
    """Return the flags of what cheats use and honest kernels hardly need: `static:...`, as
    `static:ctypes`, and `faster_than_light` for a time that the hardware does not allow."""
    found = [str(flag) for flag in report.get("flags", ()) if str(flag).startswith("static:")]
    found = [flag for flag in found if flag not in HARMLESS]
    if report["verdict"] == "faster_than_light":
        found.append("faster_than_light")
    return tuple(found)


def correct(report: Report) -> float | None:
    """Return 1 for a correct kernel and 0 for a wrong one."""
    return float(report["verdict"] == "ok") if is_judged(report) else None


def fast(report: Report) -> float | None:
    """Return 1 if it is correct and surely faster than the reference: the lower end of the 95 %
    interval of its speedup is above 1. Else return 0; None if it is correct and was not timed."""
    low = report.get("speedup_low")
    return _of_correct(report, None if low is None else float(low > 1.0))


def roofline(report: Report) -> float | None:
    """Return the share of the hardware's bound that a correct kernel reaches, `bound / time`, 1 at
    most; 0 for a wrong one. None if it is correct and there is no time or no bound."""
    share = report.get("utilisation")
    return _of_correct(report, None if share is None else min(1.0, share))


def shaped(report: Report) -> float | None:
    """Return a reward that grows on the way to a fast kernel.

    0: not built. 0.1 to 0.4: built, by the share of trials passed. 0.5: correct, not timed.
    0.5 + 0.5 * min(1, speedup_low / 4): correct and timed.
    """
    if not is_judged(report):
        return None
    if report["verdict"] == "ok":
        low = report.get("speedup_low")
        return 0.5 if low is None else 0.5 + 0.5 * min(1.0, float(low) / ENOUGH)
    if report["verdict"] in BUILD or report.get("phase") == "build":
        return 0.0
    return 0.1 + 0.3 * min(1.0, float(report.get("trials_passed", 0)) / TRIALS)


PRESETS: Mapping[str, Reward] = {
    "correct": correct,
    "fast": fast,
    "roofline": roofline,
    "shaped": shaped,
}


def reward_called(name: str | Reward) -> Reward:
    """Return a preset by its name, or the function that was given. Raises ValueError."""
    if callable(name):
        return name
    if name not in PRESETS:
        raise ValueError(f"there is no reward {name!r}: use {', '.join(PRESETS)}, or a function")
    return PRESETS[name]


def _of_correct(report: Report, value: float | None) -> float | None:
    if not is_judged(report):
        return None
    return value if report["verdict"] == "ok" else 0.0
