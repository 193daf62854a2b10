"""What isolation this host really reaches: a probe tries to get out of a sandbox and must fail."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from evaluator import sandbox, seccomp
from evaluator.job import Limits
from evaluator.report import EvaluatorError, Isolation

PROBE = Path(__file__).with_name("probe.py")
TIMEOUT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Probe:
    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class HostCheck:
    """`isolation` is the level at which every probe passed."""

    isolation: Isolation
    probes: tuple[Probe, ...]
    why_not_higher: tuple[str, ...]


def check_host() -> HostCheck:
    """Start a sandbox, let the probe try what a submission might, and look at what it reached."""
    if sandbox.find_bwrap() is None:
        reason = "bubblewrap is not installed (Debian package bubblewrap, or PKB_BWRAP)"
        return HostCheck(isolation=Isolation.NONE, probes=(), why_not_higher=(reason,))
    try:
        level, probes = _run_probe()
    except (EvaluatorError, OSError) as error:
        reason = f"bubblewrap is installed but cannot start: {error}"
        return HostCheck(isolation=Isolation.NONE, probes=(), why_not_higher=(reason,))
    if not all(probe.passed for probe in probes):
        failed = ", ".join(probe.name for probe in probes if not probe.passed)
        reason = f"the sandbox starts, but does not hold: {failed}"
        return HostCheck(isolation=Isolation.NONE, probes=probes, why_not_higher=(reason,))
    return HostCheck(isolation=level, probes=probes, why_not_higher=_missing(level))


def _run_probe() -> tuple[Isolation, tuple[Probe, ...]]:
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    limits = Limits(memory_bytes=512 << 20, processes=64, scratch_bytes=16 << 20)
    try:
        box = sandbox.launch(
            ["-m", "evaluator.probe", str(write)],
            limits=limits,
            settings={},
            fds=[write],
            output_fd=null,
        )
        os.close(write)
        write = -1
        with os.fdopen(read, closefd=False) as answers:
            found = [json.loads(line) for line in answers]
        refused = box.leaf.refused_forks if box.leaf else None
        box.kill()
    finally:
        for fd in (read, write, null):
            if fd >= 0:
                os.close(fd)
    if not found:
        raise EvaluatorError("the probe gave no answer")
    probes = [Probe(name=p["name"], passed=p["passed"], detail=p["detail"][:200]) for p in found]
    if refused is not None:
        detail = f"{refused} forks refused by the cgroup"
        probes.append(Probe(name="process limit", passed=refused > 0, detail=detail))
    return box.isolation, tuple(probes)


def _missing(level: Isolation) -> tuple[str, ...]:
    if level is Isolation.BWRAP_CGROUP_SECCOMP:
        return ("a virtual machine of its own for each run would be the next level",)
    reasons = []
    if not seccomp.is_supported():
        reasons.append(f"no seccomp filter for {platform.machine()}: only x86-64 has one")
    own = Path("/proc/self/cgroup").read_text().strip().replace("\n", "; ")
    reasons.append(
        "no cgroup with memory and pids controllers may be created below this process's"
        f" ({own}); limits are watched instead of enforced"
    )
    return tuple(reasons)
