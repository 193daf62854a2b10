"""Makes a fault of what ranks claim, or of how their sandbox ended. That is evidence, not truth."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.diagnosis.claim_reader import Claim, End
from evaluator.messages.faults import Fault
from evaluator.messages.report import Phase, Verdict
from evaluator.sandbox import multicast_guard


def of_claims(claims: Mapping[int, Claim]) -> Fault:
    """Return the failure that ranks claim; of several in the build, the compiler's own."""
    rank = min(claims, key=lambda r: (claims[r].verdict is not Verdict.BUILD_ERROR, r))
    found = claims[rank]
    where = {"ranks": tuple(claims), "evidence": found.text}
    return Fault(found.verdict, found.cause, f"rank {rank}: {found.text}", **where)


def of_death(returncode: int | None, end: End, phase: Phase) -> Fault:
    """Return the fault of a sandbox that ended by itself, of which its launcher said `end`."""
    if multicast_guard.has_ended(returncode):
        message = "a rank called NVLink multicast, which this host's operator has not turned on"
        return Fault(Verdict.PROTOCOL_VIOLATION, "multicast", message)
    ended = "no exit code" if end.code is None else f"exit code {end.code}"
    cause = "exit" if end.code is None or end.code >= 0 else f"signal_{-end.code}"
    message = f"a rank ended during {phase} ({ended})"
    return Fault(Verdict.RUNTIME_ERROR, cause, message, ranks=end.ranks)
