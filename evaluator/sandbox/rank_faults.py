"""Makes a fault of what ranks claim, or of how their sandbox ended. That is evidence, not truth."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping, Sequence

from evaluator.buffers.control import Control
from evaluator.diagnosis.claim_reader import Claim, End, read_claim
from evaluator.messages.faults import Fault
from evaluator.messages.job import Limits
from evaluator.messages.report import Phase, Verdict
from evaluator.sandbox import multicast_guard


def claims_of(controls: Sequence[Control]) -> dict[int, Claim]:
    """Return what ranks claim now, each read once: a rank may take back what it claimed."""
    return {r: read_claim(own) for r, control in enumerate(controls) if (own := control.claim)}


def of_claims(claims: Mapping[int, Claim]) -> Fault:
    """Return the failure that ranks claim; of several in the build, the compiler's own."""
    rank = min(claims, key=lambda r: (claims[r].verdict is not Verdict.BUILD_ERROR, r))
    found = claims[rank]
    where = {"ranks": tuple(claims), "evidence": found.text}
    return Fault(found.verdict, found.cause, f"rank {rank}: {found.text}", **where)


def of_tick(rank: int) -> Fault:
    """Return the fault of a rank that says it has done what it was never told."""
    message = f"rank {rank} signalled done for a call that was never asked for"
    return Fault(Verdict.PROTOCOL_VIOLATION, "tick", message, ranks=(rank,))


def of_silence(silent: Sequence[int], how: str, phase: Phase) -> Fault:
    """Return the fault of ranks that did not answer, by what limit (`how`)."""
    message = f"no answer from rank {', '.join(map(str, silent))} {how} of {phase}"
    cause = "deadlock" if phase is not Phase.BUILD else "build"
    return Fault(Verdict.TIMEOUT, cause, message, ranks=tuple(silent))


def of_excess(exceeded: str, limits: Limits) -> Fault:
    """Return the fault of ranks that passed a limit, as `Sandbox.exceeded` names it."""
    if exceeded != "processes":
        message = f"the ranks used more than {limits.memory_bytes >> 20} MiB"
        return Fault(Verdict.OOM, "memory", message)
    message = f"the ranks started more than {limits.processes} processes"
    return Fault(Verdict.RESOURCE_LIMIT, "processes", message)


def said_at_end(channel: socket.socket) -> bytes:
    """Return what a sandbox that has ended said of it: untrusted bytes, maybe none."""
    with contextlib.suppress(OSError):
        return channel.recv(4096, socket.MSG_DONTWAIT)
    return b""


def of_death(returncode: int | None, end: End, phase: Phase) -> Fault:
    """Return the fault of a sandbox that ended by itself, of which its launcher said `end`."""
    if multicast_guard.has_ended(returncode):
        message = "a rank called NVLink multicast, which this host's operator has not turned on"
        return Fault(Verdict.PROTOCOL_VIOLATION, "multicast", message)
    ended = "no exit code" if end.code is None else f"exit code {end.code}"
    cause = "exit" if end.code is None or end.code >= 0 else f"signal_{-end.code}"
    message = f"a rank ended during {phase} ({ended})"
    return Fault(Verdict.RUNTIME_ERROR, cause, message, ranks=end.ranks)
