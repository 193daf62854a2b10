"""Checks the times that judges up to 9 reported: of batches of calls, and of batches of one."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator import Device, Report, Timing
from leaderboard.runs.time_ranges import are_medians, call_range_us, is_longer, is_near, lie_in


def batch_faults(report: Report, timing: Timing, device: Device) -> Iterator[str]:
    """Yield what cannot be, in sentences."""
    least_us, most_us = call_range_us(report, device)
    told = (timing.kernel_us, timing.baseline_us)
    batches = (timing.kernel_bursts_us, timing.baseline_bursts_us)
    if timing.kernel_single_us is None or timing.baseline_single_us is None:
        yield "Judges up to 9 report the times of single calls."
        return
    single = (timing.kernel_single_us, timing.baseline_single_us)
    if not are_medians(told, batches) and not all(map(is_near, told, single)):
        yield "Times are the medians neither of the batches nor of single calls."
    if not lie_in((*told, *single, *batches[0], *batches[1]), least_us, most_us):
        yield f"A call takes from {least_us:g} us to {most_us:g} us on this device."
    if not lie_in([timing.empty_us], 0.0, most_us):
        yield "An empty batch takes no such time."
    batches_us = (sum(batches[0]) + sum(batches[1])) * timing.burst_calls
    if is_longer(batches_us, report.phase_s.get("timed", 0.0)):
        yield "The batches take longer than the phase in which they were timed."
