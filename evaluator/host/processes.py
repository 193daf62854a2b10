"""Reads in /proc who descends from whom, who may run, and how much memory processes hold."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# A process in D waits inside the kernel, and stops before it comes back.
_MAY_RUN = "RSI"
_STATE, _PARENT, _RSS_PAGES = 0, 1, 21


def may_run(pid: int) -> bool:
    """Return whether the process is neither stopped nor gone."""
    fields = _fields(pid)
    return fields is not None and fields[_STATE] in _MAY_RUN


def ancestry(pid: int) -> Iterator[int]:
    """Yield the process itself, its parent, and so on."""
    while pid > 0:
        yield pid
        fields = _fields(pid)
        pid = int(fields[_PARENT]) if fields else 0


def tree(root_pid: int) -> dict[int, int]:
    """Return the resident bytes of each process from `root_pid` down."""
    page = os.sysconf("SC_PAGE_SIZE")
    parents: dict[int, int] = {}
    rss_bytes: dict[int, int] = {}
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        if fields := _fields(pid):
            parents[pid] = int(fields[_PARENT])
            rss_bytes[pid] = int(fields[_RSS_PAGES]) * page
    inside = {root_pid}
    while more := {pid for pid, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return {pid: rss_bytes.get(pid, 0) for pid in inside}


def _fields(pid: int) -> list[str] | None:
    """Read those behind the name, which may hold anything; None where the process is gone."""
    with contextlib.suppress(OSError):
        fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
        return fields if len(fields) > _RSS_PAGES else None
    return None
