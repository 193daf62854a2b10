"""Checks the times that judges report since version 10: of single calls behind a gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluator import Device, Report, Timing
from evaluator.messages.report import ThreeTimes
from leaderboard.runs.time_ranges import (
    LEAST_US,
    are_medians,
    call_range_us,
    is_longer,
    is_near,
    lie_in,
)


def call_faults(report: Report, timing: Timing, device: Device) -> Iterator[str]:
    """Yield what cannot be, in sentences."""
    least_us, most_us = call_range_us(report, device)
    told = (timing.kernel_us, timing.baseline_us)
    single = (timing.kernel_single_us, timing.baseline_single_us)
    if timing.burst_calls != 1 or single != (None, None):
        yield "Since judge 10 a sample is one call, and there are no other single calls."
    if not are_medians(told, (timing.kernel_bursts_us, timing.baseline_bursts_us)):
        yield "Times are not the medians of the calls."
    calls_us = [us + timing.empty_us for us in timing.kernel_bursts_us + timing.baseline_bursts_us]
    if not lie_in(told, LEAST_US, most_us) or not lie_in(calls_us, least_us, most_us):
        yield f"A call takes from {least_us:g} us to {most_us:g} us on this device."
    for side, us in zip((timing.kernel, timing.baseline), told, strict=True):
        if side is None or not is_near(side.answer_us, us):
            yield "The first of each side's three times is its time to answer."
        elif not lie_in(_beside(side), LEAST_US, most_us):
            yield "A side's call time and time back to back are above zero, and no call is longer."
    yield from _clock_faults(timing, most_us)
    yield from _phase_faults(report, timing)


def _beside(side: ThreeTimes) -> list[float]:
    """Return the times that are shown next to the score, as far as they were measured."""
    return [us for us in (side.call_us, side.series_us) if us is not None]


def _clock_faults(timing: Timing, most_us: float) -> Iterator[str]:
    resolution_us = timing.resolution_us
    if resolution_us is None or not lie_in((timing.empty_us, resolution_us), 0.0, most_us):
        yield "An empty call takes no such time, or scatters by no such time."
        return
    apart_us = abs(timing.baseline_us - timing.kernel_us)
    if timing.distinguishable and apart_us < resolution_us:
        yield "Times closer than the resolution are not distinguishable; the interval excludes 1."
    reference_us = [us for us in (timing.before_us, timing.after_us) if us is not None]
    if timing.before_us is None or not lie_in(reference_us, LEAST_US, most_us):
        yield "The reference takes no such time before or after the kernel."
    if timing.ahead is not None and not 0 <= timing.ahead <= 1:
        yield "The share of calls that were queued ahead lies between 0 and 1."


def _phase_faults(report: Report, timing: Timing) -> Iterator[str]:
    """Hold the reference's calls against all phases, as they are not made in the kernel's; not
    where an earlier run made them."""
    if is_longer(_taken_us(timing, timing.kernel_bursts_us), report.phase_s.get("timed", 0.0)):
        yield "The calls take longer than the phase in which they were timed."
    reference_us = _taken_us(timing, timing.baseline_bursts_us)
    if timing.after_us is not None and is_longer(reference_us, sum(report.phase_s.values())):
        yield "The reference's calls take longer than the run."


def _taken_us(timing: Timing, samples_us: Sequence[float]) -> float:
    """Return what calls took, with what was taken off them."""
    return sum(samples_us) + len(samples_us) * timing.empty_us
