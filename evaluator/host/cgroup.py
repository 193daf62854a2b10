"""Limits a sandbox's memory and processes, by a leaf of cgroup v2 or of v1."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evaluator.host import held

ROOT = Path("/sys/fs/cgroup")
PREFIX = "pkb-"
LITTLE_BYTES = 16 << 20
SETTLE_S = 10.0
# Looks and no seconds: a loaded host wakes who looks late, as it does who frees.
QUIET_LOOKS, LOOK_EVERY_S = 50, 0.002


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """Holds a cgroup of one sandbox. `memory` and `pids` are the same folder on v2."""

    memory: Path
    pids: Path
    version: int

    def join(self) -> None:
        """Move the calling process in; its children follow."""
        for folder in {self.memory, self.pids}:
            join(folder)

    @property
    def processes(self) -> list[int]:
        """Return the pids inside."""
        return [int(pid) for pid in (self.pids / "cgroup.procs").read_text().split()]

    @property
    def oom_kills(self) -> int:
        """Return how many processes were killed for memory."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _counter(self.memory / name, "oom_kill")

    @property
    def most_bytes(self) -> float:
        """Return the most that it has held; infinite where this kernel does not say."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        with contextlib.suppress(OSError):
            return int((self.memory / name).read_text())
        return math.inf

    @property
    def refused_forks(self) -> int:
        """Return how many forks were refused: by its limit or, on cgroups of v1 and before Linux
        6.11, by that of one above."""
        return _counter(self.pids / "pids.events", "max")

    @property
    def memory_bytes(self) -> int:
        """Return what is charged to it, also what the kernel has yet to free of the dead; 0 where
        it is removed."""
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        with contextlib.suppress(OSError):
            return int((self.memory / name).read_text())
        return 0

    def settle(self, timeout_s: float = SETTLE_S) -> None:
        """Wait until the kernel frees no more memory of the dead. It does so in threads of its own,
        which take a processor for as long. What files keep in the cache stays."""
        for end in socket.socketpair():  # wakes what frees descriptors that were sent in a circle
            end.close()
        deadline, before, quiet = time.monotonic() + timeout_s, self.memory_bytes, 0
        while before > LITTLE_BYTES and quiet < QUIET_LOOKS and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
            quiet += 1
            if abs(before - (now := self.memory_bytes)) > LITTLE_BYTES // 16:
                before, quiet = now, 0

    def remove(self, timeout_s: float = 10.0) -> bool:
        """Wait until every process is gone, then remove the folders; False where some remain."""
        return remove({self.memory, self.pids}, timeout_s)


def join(folder: Path) -> None:
    """Move the calling process into a cgroup."""
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def remove(folders: Iterable[Path], timeout_s: float) -> bool:
    """Remove cgroups as soon as every process in them is gone; False where some remain after so
    many looks as usually take that long: where the host stood still, nobody had time to end."""
    looks = math.ceil(timeout_s / LOOK_EVERY_S)
    for folder in folders:
        while True:
            try:
                folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                if looks == 0:
                    return False
                looks -= 1
                time.sleep(LOOK_EVERY_S)
        held.let_go(folder)
    return True


def create_leaf(memory_bytes: int, processes: int) -> Leaf | None:
    """Make a fresh limited leaf below this process's cgroup; None where the host delegates none."""
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        if parent := _v2_parent():
            return _create_v2(parent / name, memory_bytes, processes)
        memory, pids = (parent / name for parent in _v1_parents())
        return _create_v1(memory, pids, memory_bytes, processes)
    except OSError:
        return None


def parents() -> tuple[Path, ...]:
    """Return the folders that leaves are made in."""
    parent = _v2_parent()
    return (parent,) if parent else _v1_parents()


def v2_folder() -> Path:
    """Return this process's cgroup of v2, which beside v1 limits nothing."""
    root = ROOT if (ROOT / "cgroup.controllers").exists() else ROOT / "unified"
    return root / _own_path("").lstrip("/")


def v1_folder(controller: str) -> Path:
    """Return this process's cgroup in the v1 hierarchy of a controller."""
    return ROOT / controller / _own_path(controller).lstrip("/")


def _create_v2(folder: Path, memory_bytes: int, processes: int) -> Leaf:
    with held.made(folder):
        (folder / "memory.max").write_text(str(memory_bytes))
        (folder / "pids.max").write_text(str(processes))
        swap = folder / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")
    return Leaf(memory=folder, pids=folder, version=2)


def _create_v1(memory: Path, pids: Path, memory_bytes: int, processes: int) -> Leaf:
    with held.made(memory, pids):
        (memory / "memory.limit_in_bytes").write_text(str(memory_bytes))
        (pids / "pids.max").write_text(str(processes))
    return Leaf(memory=memory, pids=pids, version=1)


def _v2_parent() -> Path | None:
    """Return this process's cgroup, or the root, where children may have both controllers."""
    if not (ROOT / "cgroup.controllers").exists():
        return None
    for folder in (v2_folder(), ROOT):
        enabled = (folder / "cgroup.subtree_control").read_text().split()
        if {"memory", "pids"} <= set(enabled):
            return folder
    return None


def _v1_parents() -> tuple[Path, ...]:
    return tuple(v1_folder(name) for name in ("memory", "pids"))


def _own_path(controller: str) -> str:
    """Return this process's cgroup in the v1 hierarchy of `controller`, or in v2 for the empty
    name."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _counter(file: Path, key: str) -> int:
    try:
        fields = dict(line.split(maxsplit=1) for line in file.read_text().splitlines())
        return int(fields.get(key, 0))
    except (OSError, ValueError):
        return 0
