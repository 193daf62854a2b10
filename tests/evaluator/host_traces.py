"""What an evaluation could leave behind on a host: processes, cgroups, files, descriptors."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evaluator.host import cgroup
from evaluator.host.leftovers import FOLDER_PREFIX, remove_leftovers
from evaluator.judge.prefork import JudgeProcess, PreforkServer

T = TypeVar("T")
CGROUPS = Path("/sys/fs/cgroup")
SETTLE_S = 2.0
# What a judge that was killed held may still be dying, and is removed after it.
SWEPT_S = 60.0
_PR_SET_CHILD_SUBREAPER = 36


@contextlib.contextmanager
def nothing_left_behind(folder: Path, keepers: Sequence[PreforkServer] = ()) -> Iterator[None]:
    """Fails where the block leaves a process, cgroup, file, thread or descriptor behind.

    `folder` becomes the place for temporary files. Orphans are reparented to this process, so that
    none can hide from the search below it.

    The judges that `keepers` keep may serve on with what they need, but not with more children than
    before: what else is below a judge is told apart only by a search that it does not outlive.
    Cgroups are those of judges that serve the block: others judge here at the same time.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    before = descendants(), _descriptors(keepers), threading.active_count()
    children = {judge.pid: _children(judge.pid) for judge in _kept(keepers)}
    serving = set(children)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreforkServer, "_fork", _noting(serving))
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        yield
    judges = {judge.pid for judge in _kept(keepers)}
    processes = _settled(lambda: descendants() - _below(judges) - before[0])
    assert not processes, f"processes left behind: {[_command(pid) for pid in processes]}"
    for pid in judges & children.keys():
        added = _settled(functools.partial(_added, pid, children[pid]))
        assert not added, f"a judge has more: {[_command(child) for child in added]}"
    cgroups = _settled(lambda: _unswept(serving), SWEPT_S)
    assert not cgroups, f"cgroups left behind: {cgroups}"
    assert _files(folder, judges) == [], "temporary files left behind"
    now = _descriptors(keepers).items()
    opened, closed = sorted(now - before[1].items()), sorted(before[1].items() - now)
    assert not opened, f"descriptors left open: {opened}; closed: {closed}"
    assert not closed, f"descriptors that others had opened are closed: {closed}"
    assert threading.active_count() == before[2], "threads left running"


def _kept(keepers: Sequence[PreforkServer]) -> list[JudgeProcess]:
    return [keeper._kept for keeper in keepers if keeper._kept is not None]


def _added(judge: int, before: set[int]) -> set[int]:
    """The judge's new children; none where it has lost some, too, as it serves by others then."""
    now = _children(judge)
    return now - before if before <= now else set()


def _files(folder: Path, judges: set[int]) -> list[str]:
    """Those that are no folder of a judge that serves on."""
    own = tuple(f"{FOLDER_PREFIX}{pid}-" for pid in judges)
    return [name for name in os.listdir(folder) if not name.startswith(own)]


def _settled(left: Callable[[], set[T]], within_s: float = SETTLE_S) -> set[T]:
    deadline = time.monotonic() + within_s
    while (remains := left()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return remains


def _noting(pids: set[int]) -> Callable[..., tuple[int, int]]:
    """Stands in for what forks a judge, and keeps its pid."""
    fork = PreforkServer._fork

    def noted(self: PreforkServer, *given: Any) -> tuple[int, int]:
        pid, pidfd = fork(self, *given)
        pids.add(pid)
        return pid, pidfd

    return noted


def _unswept(judges: set[int]) -> set[Path]:
    """Those of judges that are gone which stay although they are removed as the next judge does."""
    if not _empty_cgroups(judges):
        return set()
    remove_leftovers()
    return _empty_cgroups(judges)


def _empty_cgroups(judges: set[int]) -> set[Path]:
    """Leaves without a process of those of these judges that are gone."""
    empty = set()
    for folder, children, _ in os.walk(CGROUPS):  # forgives folders that vanish meanwhile
        for leaf in (Path(folder, name) for name in children if name.startswith(cgroup.PREFIX)):
            owner = leaf.name.removeprefix(cgroup.PREFIX).partition("-")[0]
            if not owner.isdigit() or int(owner) not in judges or Path("/proc", owner).exists():
                continue
            with contextlib.suppress(OSError):
                if not (leaf / "cgroup.procs").read_text():
                    empty.add(leaf)
    return empty


def is_running(pid: int) -> bool:
    """A zombie that nobody has reaped yet does not run."""
    try:
        return _state(pid)[0] != b"Z"
    except FileNotFoundError:
        return False


def descendants() -> set[int]:
    """The living processes below this one; the dead ones that were reparented here are buried."""
    return _below({os.getpid()})


def _below(roots: set[int]) -> set[int]:
    """The living processes that these are or have started."""
    parents, below = _parents(), set(roots)
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below


def _children(judge: int) -> set[int]:
    return {pid for pid, parent in _parents().items() if parent == judge}


def _parents() -> dict[int, int]:
    """That of each living process."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, parent = _state(int(entry))
            if state == b"Z" and parent == os.getpid():
                os.waitpid(int(entry), os.WNOHANG)
            elif state != b"Z":
                parents[int(entry)] = parent
    return parents


def _state(pid: int) -> tuple[bytes, int]:
    """Its state and its parent, which stand behind a name that may hold any bytes."""
    state, parent = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()[:2]
    return state, int(parent)


def _descriptors(keepers: Sequence[PreforkServer]) -> dict[str, str]:
    """What each leads to; those to judges that are kept are left out."""
    found, kept = {}, set[str]()
    for judge in _kept(keepers):
        ends = (judge.pidfd, judge.jobs.fileno(), judge.messages.fileno(), judge.errors.fileno())
        kept |= set(map(str, ends))
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
    return {fd: target for fd, target in found.items() if fd not in kept and "/proc/" not in target}


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return f"{pid} {Path('/proc', str(pid), 'cmdline').read_bytes()!r}"
    return str(pid)
