"""Checks that a report's times agree with each other, and that they are not beyond what calls and
hardware allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from evaluator import Report, Timing, Verdict
from evaluator.messages.job import Setting
from leaderboard.kit.request_error import RequestError
from leaderboard.metrics.floors import Floors, floors
from leaderboard.metrics.floors import limits_of as datasheet_of
from leaderboard.models.choices import times_calls
from leaderboard.read_model.judge_constants import judge_constants
from leaderboard.runs.batch_checks import batch_faults
from leaderboard.runs.call_checks import call_faults
from leaderboard.runs.time_ranges import RELATIVE


@dataclass(frozen=True)
class Work:
    """Holds the cost of a call as its problem defines it, and how much of it the options of a timed
    call ask for on average. Bounds are those of so much; of older judges, of all."""

    cost: Mapping[str, float]
    share: float


def check_timing(report: Report, timing: Timing, setting: Setting, work: Work | None) -> None:
    """Raise RequestError `impossible_times` with what cannot be. `work` is None where the catalogue
    has no cost."""
    faults_of = call_faults if times_calls(report.judge_version) else batch_faults
    for reason in (
        _disagreement(timing),
        *faults_of(report, timing, setting.device),
        _beyond_roofline(report, timing, setting, work) if work else None,
    ):
        if reason:
            fix = "Let the host's judge be the site's release, unchanged, and look at the host."
            raise RequestError("impossible_times", reason, fix)


def _disagreement(timing: Timing) -> str | None:
    ratio = timing.baseline_us / timing.kernel_us
    if not math.isclose(timing.speedup, ratio, rel_tol=RELATIVE):
        return "The speedup is not the baseline's time over the kernel's."
    calls = len(timing.kernel_bursts_us) * timing.burst_calls
    if timing.burst_calls < 1 or timing.warmup_calls < 0 or timing.timed_calls != calls:
        return "The number of timed calls is not that of the samples."
    return None


def _beyond_roofline(report: Report, timing: Timing, setting: Setting, work: Work) -> str | None:
    """Compare with the datasheet, for what costs of bfloat16 say of other types: at least as much
    is moved, at most so much more as elements are larger."""
    limits = datasheet_of(report.environment.hardware)
    if limits is None:
        return None
    calls = timing.burst_calls
    asked = {name: value * work.share for name, value in work.cost.items() if name != "exchanges"}
    least = floors({**work.cost, **asked}, limits, calls)
    if report.verdict is Verdict.OK and timing.kernel_us < _unbeatable_us(least):
        return f"The hardware needs {_unbeatable_us(least):.1f} us for a call."
    most = floors(work.cost, limits, calls, setting.dtype)
    if report.floors and not _lies_between(asdict(report.floors), least, most):
        return "The bounds are not those of this problem on this hardware."
    return None


def _unbeatable_us(bounds: Floors) -> float:
    judged: dict[str, float] = judge_constants()["floors"]
    flops_us = bounds.flops_us / judged["fewer_flops"]
    return judged["margin"] * max(bounds.wire_us, bounds.hbm_us, flops_us)


def _lies_between(told: Mapping[str, float], least: Floors, most: Floors) -> bool:
    def all_lie(name: str) -> bool:
        low, high = (getattr(side, name) or 0.0 for side in (least, most))
        return low * (1 - RELATIVE) <= told[name] <= high * (1 + RELATIVE)

    return all(all_lie(name) for name in told)
