"""Describes where a run happens: the processor or accelerator, the host, the versions of what
matters."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from evaluator.host import gpus
from evaluator.host.gpus import Gpu
from evaluator.messages.report import Environment
from evaluator.sandbox.sandbox import PASSED_SETTINGS, search_path
from problems.environment import DISTRIBUTIONS

NVCC_S = 20.0
_RELEASE = re.compile(r"release (\d{1,3}\.\d{1,3})", re.ASCII)


@cache
def environment(own_gpus: tuple[Gpu, ...] = ()) -> Environment:
    """Describe this host. The processor stands for the hardware where no GPUs are given."""
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    if own_gpus:
        told = (gpus.driver_version(), gpus.compute_capability(own_gpus))
        named = zip(("driver", "compute_capability"), told, strict=True)
        versions |= {name: value for name, value in named if value}
    for package in DISTRIBUTIONS:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    settings = {name: os.environ[name] for name in PASSED_SETTINGS if name in os.environ}
    return Environment(
        hardware=gpu_name(own_gpus) if own_gpus else cpu_name(),
        host=socket.gethostname(),
        versions=versions,
        settings=settings,
    )


def host_versions(own_gpus: tuple[Gpu, ...] = ()) -> dict[str, str]:
    """Return the versions of a host for its hello: those of each report, and its compiler's, which
    takes a process of its own to find out."""
    found = dict(environment(own_gpus).versions)
    compiler = _nvcc() if own_gpus else None
    return {**found, "nvcc": compiler} if compiler else found


def _nvcc() -> str | None:
    """Return the release of the compiler that a sandbox finds; None where there is none."""
    program = shutil.which("nvcc", path=search_path())
    if program is None:
        return None
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=NVCC_S, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = _RELEASE.search(said.stdout)
    return found[1] if found else None


def gpu_name(own_gpus: Sequence[Gpu]) -> str:
    """Return a name such as `4 x NVIDIA H200`."""
    return f"{len(own_gpus)} x {own_gpus[0].name}"


def cpu_name() -> str:
    """Return a name such as `2 x AMD EPYC 7B13`."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if sys.platform == "linux" and info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{os.cpu_count()} x {model}"
