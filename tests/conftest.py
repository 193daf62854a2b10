"""What every test shares: who is skipped, and that CI skips nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline for one example measures how busy the machine is.
settings.register_profile("tree", deadline=None)
settings.load_profile("tree")

IN_CI = os.environ.get("CI") == "true"


def pytest_runtest_setup(item: pytest.Item) -> None:
    wanted = max((int(mark.args[0]) for mark in item.iter_markers("gpu")), default=0)
    present = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if wanted > present:
        pytest.skip(f"needs {wanted} GPUs, has {present}")
    if item.get_closest_marker("nvcc") and shutil.which("nvcc") is None:
        pytest.skip("needs nvcc, of a CUDA toolkit")
    if item.get_closest_marker("browser") and shutil.which("chromium") is None:
        pytest.skip("needs chromium: apt-get install chromium")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI only a missing GPU, what belongs to one, or a framework of others excuses a test."""
    report = yield
    needs_gpu = any(item.get_closest_marker(name) for name in ("gpu", "nvcc", "framework"))
    excused = hasattr(report, "wasxfail") or needs_gpu
    if IN_CI and report.skipped and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report
