"""Prints a report as a few lines for a terminal."""

from __future__ import annotations

from evaluator.messages.job import Placement
from evaluator.messages.report import Report, Timing, Trial


def pretty(report: Report) -> str:
    """Return the lines."""
    lines = [f"\n{report.verdict.upper()}  {report.problem}: {report.message}"]
    if report.evidence:
        lines.append(f"  evidence: {report.evidence}")
    lines += [_trial_line(trial) for trial in report.trials]
    if report.timing is not None:
        lines += _timing_lines(report.timing)
    if report.placement is Placement.SHARED:
        lines.append("  placement: shared (all ranks on one device; checked, not timed)")
    if report.flags:
        lines.append(f"  flags: {', '.join(report.flags)}")
    spent = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in report.phase_s.items())
    lines += [f"  isolation: {report.isolation}", f"  time: {spent}"]
    for log in report.logs:
        who = "sandbox" if log.rank < 0 else f"rank {log.rank}"
        lines += [f"  --- log of {who}", *(f"  | {line}" for line in log.text.splitlines()[-20:])]
    return "\n".join(lines)


def _timing_lines(timing: Timing) -> list[str]:
    """Return the score with its interval, then the times that do not rank."""
    lines = [
        f"  kernel {timing.kernel_us:.1f} us, reference {timing.baseline_us:.1f} us:"
        f" {timing.speedup:.2f}x ({timing.speedup_low:.2f} to {timing.speedup_high:.2f}),"
        f" medians of {timing.timed_calls} and {len(timing.baseline_bursts_us)} calls"
    ]
    if timing.resolution_us is not None:
        lines.append(
            f"  {timing.empty_us:.1f} us of an empty call taken off,"
            f" resolution {timing.resolution_us:.1f} us"
        )
    for name in ("call", "series"):
        own, usual = (
            getattr(side, f"{name}_us", None) for side in (timing.kernel, timing.baseline)
        )
        if own and usual:
            lines.append(f"  {_OTHER_TIMES[name]}: kernel {own:.1f} us, reference {usual:.1f} us")
    return lines


_OTHER_TIMES = {"call": "nothing queued ahead", "series": "back to back"}


def _trial_line(trial: Trial) -> str:
    errors = [check.max_error for check in trial.checks if check.max_error is not None]
    margin = f"largest error {max(errors):.2g} of the tolerance" if errors else "no error measured"
    result = "passed" if trial.passed else "FAILED"
    return f"  trial {trial.trial} ({trial.m} x {trial.n}, {trial.note}): {result}, {margin}"
