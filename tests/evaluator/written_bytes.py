"""Counts what the processes of a judge write: it stands for what leaves GPUs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from evaluator.host import processes
from evaluator.host.links import Sent


def count_written() -> list[Sent]:
    """Return the bytes that the processes of this judge have written, to sockets mostly."""
    nbytes = 0
    for pid in processes.tree(os.getpid()):
        with contextlib.suppress(OSError):
            counts = Path(f"/proc/{pid}/io").read_text().split()
            nbytes += int(counts[counts.index("wchar:") + 1])
    return [{"NVLink": nbytes, "PCIe": 0}]


def count_nothing() -> list[Sent]:
    """Return a count of nothing."""
    return [{"NVLink": 0, "PCIe": 0}]
