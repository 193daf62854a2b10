"""Prints a report as a few lines for a terminal."""

from __future__ import annotations

from evaluator.messages.job import Placement
from evaluator.messages.report import Report, Trial


def pretty(report: Report) -> str:
    """Return the lines."""
    lines = [f"\n{report.verdict.upper()}  {report.problem}: {report.message}"]
    if report.evidence:
        lines.append(f"  evidence: {report.evidence}")
    lines += [_trial_line(trial) for trial in report.trials]
    if report.timing is not None:
        time = report.timing
        lines.append(
            f"  kernel {time.kernel_us:.1f} us, reference {time.baseline_us:.1f} us"
            f" (medians of {len(time.kernel_bursts_us)} batches of {time.burst_calls} calls,"
            f" {time.warmup_calls} warm-up calls)"
        )
        lines.append(
            f"  one call at a time: kernel {time.kernel_single_us:.1f} us,"
            f" reference {time.baseline_single_us:.1f} us"
        )
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


def _trial_line(trial: Trial) -> str:
    errors = [check.max_error for check in trial.checks if check.max_error is not None]
    margin = f"largest error {max(errors):.2g} of the tolerance" if errors else "no error measured"
    result = "passed" if trial.passed else "FAILED"
    return f"  trial {trial.trial} ({trial.m} x {trial.n}, {trial.note}): {result}, {margin}"
