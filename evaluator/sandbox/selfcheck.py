"""Finds what isolation this host really reaches: a probe tries to get out of a sandbox and must
fail."""

from __future__ import annotations

import json
import os
import platform
import resource
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.host.gpus import Gpu, offered
from evaluator.host.host import Host
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Device, Limits, limits_of
from evaluator.messages.report import Isolation
from evaluator.sandbox import sandbox, seccomp
from evaluator.sandbox.process_limits import OPEN_FILES

TIMEOUT_S = 240.0


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Holds how one attempt went."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class HostCheck:
    """Holds what the probes found; `isolation` is the level at which every one of them passed."""

    isolation: Isolation
    probes: tuple[Probe, ...]
    why_not_higher: tuple[str, ...]
    gpu_probes: tuple[Probe, ...] = ()

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return what kernels may need and this host's GPUs cannot do in a sandbox."""
        return tuple(probe.name for probe in self.gpu_probes if not probe.passed)


def check_host() -> HostCheck:
    """Let probes in sandboxes try what a submission might, to get out and to use the GPUs."""
    return replace(check_isolation(), gpu_probes=_check_gpus(offered()))


def check_isolation() -> HostCheck:
    """Let a probe in a sandbox try to get out."""
    if reasons := _lacking():
        return HostCheck(isolation=Isolation.NONE, probes=(), why_not_higher=reasons)
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


def _lacking() -> tuple[str, ...]:
    """Return what keeps a sandbox from starting here."""
    reasons = []
    if sandbox.find_bwrap() is None:
        reasons.append("bubblewrap is not installed (Debian package bubblewrap, or PKB_BWRAP)")
    if (most := _most_open_files()) < OPEN_FILES:
        reasons.append(
            f"the hard limit of open files is {most}, and each run needs {OPEN_FILES}:"
            " raise nofile (`ulimit -n`, or LimitNOFILE of systemd)"
        )
    return tuple(reasons)


def _most_open_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _check_gpus(gpus: tuple[Gpu, ...]) -> tuple[Probe, ...]:
    """Return each attempt with the first rank's failure, if any rank failed; nothing without two
    GPUs, or where no sandbox can open enough files."""
    if len(gpus) < 2 or _most_open_files() < OPEN_FILES:
        return ()
    host = Host(gpus=gpus, threads=1)
    program = ["-m", "evaluator.probes.gpu", "{answers}", str(len(gpus))]
    with host.alone():
        box, found = _answers(program, limits_of(Device.CUDA), host)
        box.kill()
    names = list(dict.fromkeys(probe.name for probe in found))
    return tuple(_merged([p for p in found if p.name == name], len(gpus)) for name in names)


def _merged(probes: list[Probe], ranks: int) -> Probe:
    """Sum up an attempt's lines; the first stands for ranks that gave no answer."""
    silent, *answers = probes
    failed = [probe for probe in answers if not probe.passed]
    if failed:
        return failed[0]
    return answers[0] if len(answers) == ranks else silent


def _run_probe() -> tuple[Isolation, tuple[Probe, ...]]:
    limits = Limits(memory_bytes=512 << 20, processes=64, scratch_bytes=16 << 20)
    mode = ["filtered"] if seccomp.is_supported() else []
    box, probes = _answers(["-m", "evaluator.probes.isolation", "{answers}", *mode], limits, None)
    if not probes:
        raise EvaluatorError("the probe gave no answer")
    refused = box.leaf.refused_forks if box.leaf else None
    probes.append(_freezer(box))
    box.kill()
    if refused is not None:
        detail = f"{refused} forks refused by the cgroup"
        probes.append(Probe(name="process limit", passed=refused > 0, detail=detail))
    return box.isolation, tuple(probes)


def _freezer(box: sandbox.Sandbox) -> Probe:
    """Say how a side is stopped while the other is timed; either way holds, at every level."""
    detail = "none may be created: sides are stopped by signals, and every thread is looked at"
    if box.freezer is not None:
        detail = f"sides are stopped by the freezer of cgroup v{box.freezer.version}"
    return Probe(name="freezer", passed=True, detail=detail)


def _answers(
    program: list[str], limits: Limits, host: Host | None
) -> tuple[sandbox.Sandbox, list[Probe]]:
    """Return what a program says in a sandbox; `{answers}` in it becomes the descriptor to say it
    to."""
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        box = sandbox.launch(
            [part.format(answers=write) for part in program],
            limits=limits,
            settings=host.settings if host else {},
            fds=[write],
            output_fd=null,
            devices=host.device_files if host else (),
        )
        os.close(write)
        write = -1
        timer = threading.Timer(TIMEOUT_S, box.process.kill)
        timer.start()
        with os.fdopen(read, closefd=False) as answers:
            found = [json.loads(line) for line in answers]
        timer.cancel()
        timer.join()
    finally:
        for fd in (read, write, null):
            if fd >= 0:
                os.close(fd)
    return box, [Probe(name=p["name"], passed=p["passed"], detail=p["detail"][:200]) for p in found]


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
