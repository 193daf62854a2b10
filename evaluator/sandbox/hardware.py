"""Describes where a run happens: the processor or accelerator, the host, the versions of what
matters."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from evaluator.host import gpus
from evaluator.host.gpus import Gpu
from evaluator.messages.report import Environment
from evaluator.sandbox.sandbox import PASSED_SETTINGS

PACKAGES = ("torch", "triton", "numpy", "ninja", "nvidia-nccl-cu13", "nvidia-cuda-runtime")


@cache
def environment(own_gpus: tuple[Gpu, ...] = ()) -> Environment:
    """Describe this host. The processor stands for the hardware where no GPUs are given."""
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    if own_gpus and (driver := gpus.driver_version()):
        versions["driver"] = driver
    for package in PACKAGES:
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
