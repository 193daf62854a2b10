"""Stops every thread of a sandbox at once, by the freezer of cgroup v2 or, without one, of v1."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from evaluator.host import cgroup, held


@dataclass(frozen=True, kw_only=True)
class _Files:
    switch: str
    state: str
    on: bytes
    off: bytes
    frozen: bytes


_V2 = _Files(switch="cgroup.freeze", state="cgroup.events", on=b"1", off=b"0", frozen=b"frozen 1")
_V1 = _Files(
    switch="freezer.state", state="freezer.state", on=b"FROZEN", off=b"THAWED", frozen=b"FROZEN"
)


@dataclass(frozen=True, kw_only=True)
class Freezer:
    """Holds a cgroup that can be frozen. Its files stay open: it is frozen for every timed call.

    What is frozen can be killed on v2; on v1 it dies when it is thawed.
    """

    folders: tuple[Path, ...]
    version: int
    switch_fd: int
    state_fd: int
    usage_fd: int | None

    def join(self) -> None:
        """Move the calling process in; its children follow."""
        for folder in self.folders:
            cgroup.join(folder)

    def freeze(self) -> None:
        """Have the kernel stop every thread inside, now or when it comes back from the kernel."""
        os.pwrite(self.switch_fd, self._files.on, 0)

    def thaw(self) -> None:
        """Let all of them go on."""
        os.pwrite(self.switch_fd, self._files.off, 0)

    @property
    def is_frozen(self) -> bool:
        """Return whether the kernel says that every thread has stopped."""
        return self._files.frozen in os.pread(self.state_fd, 256, 0)

    @property
    def processor_s(self) -> float | None:
        """Return the processor seconds used inside so far; None where the kernel does not count."""
        if self.usage_fd is None:
            return None
        text = os.pread(self.usage_fd, 4096, 0)
        return int(text.split()[1]) / 1e6 if self.version == 2 else int(text) / 1e9

    def remove(self, timeout_s: float = 10.0) -> bool:
        """Wait until every process is gone, then remove the folders; False where some remain."""
        self.thaw()
        for fd in {self.switch_fd, self.state_fd, self.usage_fd} - {None}:
            os.close(fd)  # type: ignore[arg-type]
        return cgroup.remove(self.folders, timeout_s)

    @property
    def _files(self) -> _Files:
        return _V2 if self.version == 2 else _V1


def create_freezer(leaf: cgroup.Leaf | None) -> Freezer | None:
    """Return a freezer for whoever is in the leaf; None where the host delegates none.

    On v2 it is the leaf's own folder, as a process can be in one only; it needs no controller.
    """
    name = f"{cgroup.PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    with contextlib.suppress(OSError):
        own = leaf.memory if leaf is not None and leaf.version == 2 else None
        return _create_v2(own or cgroup.v2_folder() / name)
    with contextlib.suppress(OSError):
        return _create_v1(name)
    return None


def parents() -> tuple[Path, ...]:
    """Return the folders that freezers are made in."""
    v1 = tuple(cgroup.v1_folder(controller) for controller in ("freezer", "cpuacct"))
    return (cgroup.v2_folder(), *v1)


def thaw_leftover(folder: Path) -> None:
    """Let what a dead judge has left frozen die of the signal that it got."""
    with contextlib.suppress(OSError):
        fd = os.open(folder / _V1.switch, os.O_WRONLY)
        os.write(fd, _V1.off)
        os.close(fd)


def _create_v2(folder: Path) -> Freezer:
    with contextlib.nullcontext() if folder.exists() else held.made(folder):
        os.close(os.open(folder.parent / "cgroup.procs", os.O_WRONLY))  # or nobody may join
        switch = os.open(folder / _V2.switch, os.O_WRONLY)
    return Freezer(
        folders=(folder,),
        version=2,
        switch_fd=switch,
        state_fd=os.open(folder / _V2.state, os.O_RDONLY),
        usage_fd=os.open(folder / "cpu.stat", os.O_RDONLY),
    )


def _create_v1(name: str) -> Freezer:
    folder, accounting = (cgroup.v1_folder(own) / name for own in ("freezer", "cpuacct"))
    with held.made(folder):
        switch = os.open(folder / _V1.switch, os.O_RDWR)
    folders: tuple[Path, ...] = (folder,)
    usage = None
    with contextlib.suppress(OSError):
        held.make(accounting)
        usage = os.open(accounting / "cpuacct.usage", os.O_RDONLY)
        folders = (folder, accounting)
    return Freezer(folders=folders, version=1, switch_fd=switch, state_fd=switch, usage_fd=usage)
