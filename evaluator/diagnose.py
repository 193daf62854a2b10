"""From evidence to a verdict with its reason in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.job import Job
from evaluator.ranks import Fault
from evaluator.report import Isolation, OutputCheck, Timing, Verdict
from evaluator.scan import scan_source

SEVERITY = (
    Verdict.PROTOCOL_VIOLATION,
    Verdict.INPUT_CONTRACT_BROKEN,
    Verdict.LATE_OUTPUT,
    Verdict.NONFINITE_OUTPUT,
    Verdict.OUTPUT_MISMATCH,
)


def first_fault(checks: Sequence[OutputCheck], where: str) -> Fault:
    """The gravest verdict among the failed checks, naming every rank that shows it."""
    verdict = next(v for v in SEVERITY if any(check.verdict is v for check in checks))
    shown = [check for check in checks if check.verdict is verdict]
    ranks = sorted({check.rank for check in shown})
    return Fault(verdict, _CAUSES[verdict], f"{where}: {_describe(shown[0])}", ranks=ranks)


_CAUSES = {
    Verdict.PROTOCOL_VIOLATION: "guard_band",
    Verdict.INPUT_CONTRACT_BROKEN: "input_changed",
    Verdict.LATE_OUTPUT: "unwritten",
    Verdict.NONFINITE_OUTPUT: "nonfinite",
    Verdict.OUTPUT_MISMATCH: "values",
}


def _describe(check: OutputCheck) -> str:
    what = f"{check.output} of rank {check.rank}"
    if check.verdict is Verdict.PROTOCOL_VIOLATION:
        return f"memory outside the outputs of rank {check.rank} was written"
    if check.verdict is Verdict.INPUT_CONTRACT_BROKEN:
        return f"the input {what} was changed, which the problem does not allow"
    share = f"{check.mismatched} of {check.elements} elements"
    if check.verdict is Verdict.LATE_OUTPUT:
        return f"{share} of {what} had not been written when the rank said it was done"
    if check.verdict is Verdict.NONFINITE_OUTPUT:
        return f"{what} holds NaN or infinity where the right answer is finite"
    error = f", up to {check.max_error:.3g} times the tolerance" if check.max_error else ""
    return f"{share} of {what} are wrong{error}"


def sentence(fault: Fault | None, timing: Timing | None) -> str:
    """The verdict's reason, for people."""
    if fault is not None:
        return fault.message
    assert timing is not None
    gain = (
        f"{timing.speedup:.2f}x the reference"
        f" (95 % interval {timing.speedup_low:.2f} to {timing.speedup_high:.2f})"
    )
    if not timing.distinguishable:
        gain += ", not distinguishable from 1.0x"
    return f"every output of every call was right; {timing.kernel_us:.1f} us a call, {gain}"


def flags_of(job: Job, isolation: Isolation) -> tuple[str, ...]:
    """Labels that annotate a run and never decide it."""
    flags = list(scan_source(job.source))
    if isolation is not Isolation.BWRAP_CGROUP_SECCOMP and isolation is not Isolation.VM:
        flags.append("soft_limits")
    return tuple(flags)
