"""Where a run happens: the processor or accelerator, the host, the versions of what matters."""

from __future__ import annotations

import os
import platform
import socket
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

from evaluator.report import Environment
from evaluator.sandbox import PASSED_SETTINGS

PACKAGES = ("torch", "triton", "numpy", "ninja")


@cache
def environment() -> Environment:
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    settings = {name: os.environ[name] for name in PASSED_SETTINGS if name in os.environ}
    return Environment(
        hardware=cpu_name(), host=socket.gethostname(), versions=versions, settings=settings
    )


def cpu_name() -> str:
    """Such as `2 x AMD EPYC 7B13`."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if sys.platform == "linux" and info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{os.cpu_count()} x {model}"
