"""Start long-lived processes with a record on disk, by which later commands find and stop them.

A record holds the process's start time and the boot it belongs to: a recycled pid is never taken
for the process that once had it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tooling import places

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Record:
    """Record a process, leader of its group; `fingerprint` tells what it was started from."""

    pid: int
    start_ticks: int
    boot_id: str
    fingerprint: str
    port: int | None = None

    @property
    def is_running(self) -> bool:
        return self.boot_id == _boot_id() and self.start_ticks == start_ticks(self.pid)


def start(
    name: str,
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    fingerprint: str,
    port: int | None = None,
) -> Record:
    """Start a process in a session of its own, its output in `<state>/log/<name>.log`."""
    places.logs().mkdir(parents=True, exist_ok=True)
    with (places.logs() / f"{name}.log").open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=places.ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    record = Record(
        pid=process.pid,
        start_ticks=start_ticks(process.pid) or 0,
        boot_id=_boot_id(),
        fingerprint=fingerprint,
        port=port,
    )
    _path(name).write_text(json.dumps(asdict(record)))
    return record


def find(name: str) -> Record | None:
    """Return the record of a process that still runs, or None."""
    try:
        record = Record(**json.loads(_path(name).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return record if record.is_running else None


def stop(name: str, *, patience_s: float = 20.0) -> Record | None:
    """Ask a process and its group to end, then kill what is left; None when it did not run."""
    record = find(name)
    if record is not None:
        os.kill(record.pid, signal.SIGTERM)
        _wait_for_end(record, patience_s)
        if start_ticks(record.pid) in (None, record.start_ticks):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(record.pid, signal.SIGKILL)
        _wait_for_end(record, patience_s)
    _path(name).unlink(missing_ok=True)
    return record


def start_ticks(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot; None when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    return None if fields[0] == "Z" else int(fields[19])


def _wait_for_end(record: Record, patience_s: float) -> None:
    deadline_s = time.monotonic() + patience_s
    while record.is_running and time.monotonic() < deadline_s:
        time.sleep(0.05)


def _path(name: str) -> Path:
    return places.private_folder("run") / f"{name}.json"


def _boot_id() -> str:
    return BOOT_ID.read_text().strip()
