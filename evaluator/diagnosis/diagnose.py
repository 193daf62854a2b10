"""Turns evidence into a verdict with its reason in one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluator.diagnosis import log_patterns
from evaluator.diagnosis.interpreter import is_interpreted
from evaluator.diagnosis.log_patterns import Sighting, Signs, first_sighting, last_failure
from evaluator.diagnosis.scan import scan_source
from evaluator.diagnosis.stacks import COMPILATION, stacks, standstill
from evaluator.messages.faults import Fault
from evaluator.messages.hangs import hang_of
from evaluator.messages.job import Job
from evaluator.messages.report import Isolation, OutputCheck, Phase, RankLog, Timing, Verdict

SEVERITY = (
    Verdict.PROTOCOL_VIOLATION,
    Verdict.INPUT_CONTRACT_BROKEN,
    Verdict.LATE_OUTPUT,
    Verdict.NONFINITE_OUTPUT,
    Verdict.OUTPUT_MISMATCH,
)


def first_fault(checks: Sequence[OutputCheck], where: str) -> Fault:
    """Return the gravest verdict among the failed checks, naming every rank that shows it."""
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
    if not check.mismatched:
        rough = f"rms error {check.rms_error:.2g} tolerances, limit {check.rms_limit:.2g}"
        return f"{what} is too rough as a whole: {rough}"
    error = f", up to {check.max_error:.3g} times the tolerance" if check.max_error else ""
    return f"{share} of {what} are wrong{error}"


def sentence(fault: Fault | None, found: Diagnosis, timing: Timing | None) -> str:
    """Return the verdict's reason, for people. Without a timing an ok run was shared."""
    if fault is not None:
        if fault.verdict is Verdict.TIMEOUT and found.evidence:
            late = "compilation took longer than allowed: " if found.cause == COMPILATION else ""
            named = f". {found.hang}" if found.hang else ""
            return f"{late}{fault.message}: {found.evidence}{named}"
        if found.verdict is Verdict.HOST_UNSUPPORTED is not fault.verdict:
            return f"ranks that share a GPU may not have what it needs: {fault.message}"
        return fault.message
    if timing is None:
        checked = "every output of every call was right, one by one and back to back"
        return f"{checked}; all ranks shared a device, nothing was timed"
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
    if is_interpreted(job):
        flags.append("interpreted")
    return tuple(flags)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Holds why a run failed: the cause, the line that shows it first, and the ranks that show
    it. `hang` names the kernel that never finished."""

    verdict: Verdict
    cause: str | None = None
    evidence: str | None = None
    ranks: tuple[int, ...] = ()
    hang: str | None = None


def refine(
    verdict: Verdict,
    cause: str,
    evidence: str | None,
    logs: Sequence[RankLog],
    phase: Phase,
    *,
    ranks: Sequence[int] = (),
) -> Diagnosis:
    """Add what the ranks' logs show to what the judge knows of a failure.

    A claim is short and may be a rank's that only noticed another's end. A log is as untrusted as a
    claim, and can do no more: its verdicts all count against the kernel, and the judge's own
    findings are left alone.
    """
    known = Diagnosis(verdict=verdict, cause=cause, evidence=evidence, ranks=tuple(ranks))
    if verdict is Verdict.TIMEOUT:
        found = standstill(stacks(logs))
        return (
            replace(known, cause=found.cause or cause, evidence=found.sentence) if found else known
        )
    if verdict not in CLAIMS_OF_CODE:
        return known
    for signs in _telling(cause, phase):
        if seen := _seen(logs, signs, cause):
            return _told(known, seen, logs)
    return known


def with_kernel(found: Diagnosis, source: str) -> Diagnosis:
    """Name the kernel that a run on GPUs waited for without end, where stacks and source do."""
    if found.verdict is not Verdict.TIMEOUT or found.cause == COMPILATION or not found.evidence:
        return found
    hang = hang_of(found.evidence, source)
    return replace(found, hang=hang.says) if hang and hang.is_named else found


def unblamed(found: Diagnosis) -> Diagnosis:
    """Return what ranks on one GPU may lack by that alone as host_unsupported: on GPUs of their own
    it may be no failure. It is evidence of the ranks', but gains them nothing but another host."""
    is_known = found.verdict in (*CLAIMS_OF_CODE, Verdict.OOM)
    if not is_known or found.cause not in _LACKS_OF_ONE_GPU:
        return found
    return replace(found, verdict=Verdict.HOST_UNSUPPORTED, cause="host")


_LACKS_OF_ONE_GPU = {"gpu_memory", "invalid_device", "multicast", "nccl", "one_gpu", "peer_access"}
CLAIMS_OF_CODE = (Verdict.BUILD_ERROR, Verdict.IMPORT_ERROR, Verdict.RUNTIME_ERROR)

# What they leave open is in the traceback, above the exception that a rank claimed.
_OPEN = {"exception", "claim", *(sign.cause for sign in log_patterns.MESSAGES)} - {"dtype", "shape"}
_BY_CAUSE = {sign.cause: (sign,) for sign in log_patterns.ROOTS if sign.cause != "syntax"}
# After these every later call of the rank fails too, and so may its peers' calls.
_STICKY = {
    *("illegal_access", "misaligned_access", "illegal_instruction"),
    *("device_assert", "launch_failure"),
}
_STAMP = re.compile(r"\[[EWF](\d{4} \d\d:\d\d:\d\d\.\d+)")


def _is_death(cause: str) -> bool:
    return cause == "exit" or cause.startswith("signal")


def _telling(cause: str, phase: Phase) -> Sequence[Signs]:
    """Return the signs that say more than a cause does, group by group: the next where none
    shows."""
    if _is_death(cause):
        # A kernel that was built has got over what its build printed.
        is_built = phase is not Phase.BUILD
        roots = log_patterns.MEMORY + log_patterns.GPU if is_built else log_patterns.ROOTS
        return (roots, log_patterns.CRASHES)
    if cause in {sign.cause for sign in log_patterns.AFTERMATH}:
        return (log_patterns.ROOTS, log_patterns.MESSAGES, log_patterns.ANYTHING)
    if cause == "compiler":
        return (log_patterns.BUILD,)
    return (log_patterns.ROOTS,) if cause in _OPEN else (_BY_CAUSE.get(cause, ()),)


def _relevant(text: str, cause: str) -> str:
    """Return the whole log, unless an error in it may be one that the kernel got over."""
    if _is_death(cause) or cause in _BY_CAUSE:
        return text
    failure = last_failure(text)
    # A compiler that the kernel called itself has printed above the traceback.
    return text if "CalledProcessError: " in failure else failure


def _seen(logs: Sequence[RankLog], signs: Signs, cause: str) -> dict[int, Sighting]:
    """Return what each rank shows first, without those that only noticed another's end."""
    found = {
        log.rank: sighting
        for log in logs
        if log.rank >= 0 and (sighting := first_sighting(_relevant(log.text, cause), signs))
    }
    return {
        rank: sighting
        for rank, sighting in found.items()
        if not first_sighting(sighting.line, log_patterns.AFTERMATH)
    }


def _told(known: Diagnosis, seen: Mapping[int, Sighting], logs: Sequence[RankLog]) -> Diagnosis:
    stamps = {log.rank: _stamp(log.text, seen[log.rank]) for log in logs if log.rank in seen}
    is_dated = len(seen) > 1 and all(stamps.values())
    earliest = min(seen, key=lambda rank: (stamps[rank] or "", rank))
    first = next((rank for rank in known.ranks if rank in seen), min(seen))
    first = earliest if is_dated else first
    sign = seen[first].sign
    alike = tuple(sorted(rank for rank in seen if seen[rank].sign.cause == sign.cause))
    return Diagnosis(
        verdict=sign.verdict or known.verdict,
        cause=sign.cause,
        evidence=_placed(seen[first], logs, first),
        ranks=(first,) if is_dated and sign.cause in _STICKY else alike,
    )


def _stamp(text: str, sighting: Sighting) -> str | None:
    """Return when a rank's log first shows a cause, where the line that does so is dated."""
    stamps = [
        stamp[1]
        for line in text.splitlines()
        if (stamp := _STAMP.search(line)) and sighting.sign.pattern.search(line)
    ]
    return min(stamps, default=None)


def _placed(sighting: Sighting, logs: Sequence[RankLog], rank: int) -> str:
    """Return the line that shows a cause; that of a crash names the line of the submission's
    source."""
    if not sighting.sign.cause.startswith("signal_"):
        return sighting.line
    own = [stack.own_frame for stack in stacks(logs) if stack.rank == rank]
    return f"{sighting.line}, in {own[0]}" if own and own[0] else sighting.line
