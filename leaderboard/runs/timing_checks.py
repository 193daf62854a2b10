"""Checks that a report's times agree with each other, and that they are not beyond what calls and
hardware allow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from evaluator import Device, Report, Timing, Verdict, limits_of
from evaluator.messages.job import Setting
from leaderboard.kit.request_error import RequestError
from leaderboard.metrics.floors import Floors, floors
from leaderboard.metrics.floors import limits_of as datasheet_of
from leaderboard.read_model.judge_constants import judge_constants

# No call of a right kernel takes less, batched or not: on a GPU it is at least one launch, which
# costs the processor 2 us; on a processor a function and an operator of torch.
LEAST_CALL_US = {Device.CUDA: 1.0, Device.CPU: 0.2}
# Nor does anything that a clock of nanoseconds has seen.
LEAST_US = 1e-3
# Times of batches are told in thousandths of a microsecond, everything else as it is.
ROUNDED_US = 1e-3
RELATIVE = 1e-6


@dataclass(frozen=True)
class Work:
    """Holds the cost of a call as its problem defines it, and how much of it the options of a timed
    call ask for on average. Bounds are those of so much; of older judges, of all."""

    cost: Mapping[str, float]
    share: float


def check_timing(report: Report, timing: Timing, setting: Setting, work: Work | None) -> None:
    """Raise RequestError `impossible_times` with what cannot be. `work` is None where the catalogue
    has no cost."""
    for reason in (
        _disagreement(timing),
        _out_of_range(report, timing, setting.device),
        _longer_than_phase(report, timing),
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
        return "The number of timed calls is not that of the batches."
    told = (timing.kernel_us, timing.baseline_us)
    batches = (_median(timing.kernel_bursts_us), _median(timing.baseline_bursts_us))
    single = (timing.kernel_single_us, timing.baseline_single_us)
    if not any(all(map(_is_near, told, found)) for found in (batches, single)):
        return "Times are the medians neither of the batches nor of single calls."
    return None


def _median(times_us: Sequence[float]) -> float:
    return statistics.median(times_us)


def _is_near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ROUNDED_US)


def _out_of_range(report: Report, timing: Timing, device: Device) -> str | None:
    """Allow what was found to be faster than the hardware any time that a clock can tell."""
    least_us = LEAST_CALL_US[device] if report.verdict is Verdict.OK else LEAST_US
    most_us = limits_of(device).timed_s * 1e6
    calls_us = (
        *(timing.kernel_us, timing.baseline_us),
        *(timing.kernel_single_us, timing.baseline_single_us),
        *(timing.kernel_bursts_us + timing.baseline_bursts_us),
    )
    if not all(least_us <= us <= most_us for us in calls_us):
        return f"A call takes from {least_us:g} us to {most_us:g} us on this device."
    if not 0 <= timing.empty_us <= most_us:
        return "An empty batch takes no such time."
    return None


def _longer_than_phase(report: Report, timing: Timing) -> str | None:
    batches_us = (
        sum(timing.kernel_bursts_us) + sum(timing.baseline_bursts_us)
    ) * timing.burst_calls
    timed_s = report.phase_s.get("timed", 0.0)
    if batches_us > timed_s * 1e6 * (1 + ROUNDED_US):
        return "The batches take longer than the phase in which they were timed."
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
