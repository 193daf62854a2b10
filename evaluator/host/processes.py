"""Reads in /proc who descends from whom, which threads stand still, and what processes use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

# Stopped, stopped by a tracer, or gone. One in D waits inside the kernel, and goes on by itself.
_STILL = "TtZX"
MOST_ENDABLE = "1000"  # proc(5), oom_score_adj
_STATE, _PARENT, _USER_TICKS, _SYSTEM_TICKS, _THREADS, _RSS_PAGES = 0, 1, 11, 12, 17, 21


def threads(pids: Iterable[int]) -> dict[int, bool]:
    """Return for each thread of these processes whether it stands still.

    All of them: those of a process whose first thread has ended run on.
    """
    return {task: fields[_STATE] in _STILL for task, fields in _tasks(pids)}


def thread_times_s(pids: Iterable[int]) -> dict[int, float]:
    """Return the processor seconds that each thread of these processes has used."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return {
        task: (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) * tick_s
        for task, fields in _tasks(pids)
    }


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


def held_bytes(rss_bytes: Mapping[int, int]) -> int:
    """Return what these processes hold together, given the resident bytes of each: what several map
    counts once. Of one that cannot be looked into all that is resident counts."""
    return sum(
        own if (own := _share_bytes(pid)) is not None else rss for pid, rss in rss_bytes.items()
    )


def count_tasks(pids: Iterable[int]) -> int:
    """Return how many threads these processes have."""
    return sum(int(fields[_THREADS]) for pid in pids if (fields := _fields(pid)))


def tasks_of_user(user_id: int) -> int:
    """Return how many threads this user's processes have."""
    tasks = 0
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == user_id and (fields := _fields(pid)):
                tasks += int(fields[_THREADS])
    return tasks


def end_first() -> None:
    """Have a host without memory end this process, and those that it starts, before any other."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(MOST_ENDABLE)


def processor_s(pid: int) -> float:
    """Return the seconds of a processor that all threads of the process have had; 0 where it is
    gone."""
    fields = _fields(pid)
    ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS]) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _tasks(pids: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in map(int, os.listdir(f"/proc/{pid}/task")):
                if fields := _fields(pid, task):
                    yield task, fields


def _share_bytes(pid: int) -> int | None:
    """Return a process's part of what is mapped (Pss); None where it is gone or hides that."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return None


def _fields(pid: int, task: int | None = None) -> list[str] | None:
    """Read those behind the name, which may hold any bytes; None where it is gone."""
    folder = f"/proc/{pid}" if task is None else f"/proc/{pid}/task/{task}"
    with contextlib.suppress(OSError):
        found = Path(folder, "stat").read_bytes().rpartition(b")")[2]
        fields = found.decode("ascii", "replace").split()
        return fields if len(fields) > _RSS_PAGES else None
    return None
