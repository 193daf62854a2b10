"""Marks folders as in use for as long as the process that made them lives.

By a lock, as whoever shares the folder may be in another container: there its owner's pid means
nothing, or somebody else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_FDS: dict[Path, int] = {}
_HOW = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(folder: Path) -> None:
    """Make a folder, and hold it."""
    folder.mkdir()
    hold(folder)


@contextlib.contextmanager
def made(*folders: Path) -> Iterator[None]:
    """Make folders, and hold them; where that or the block fails, they are gone again."""
    try:
        for folder in folders:
            make(folder)
        yield
    except OSError:
        for folder in folders:
            if folder in _FDS:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                let_go(folder)
        raise


def hold(folder: Path) -> None:
    """Hold a folder until `let_go`, or until this process and its forks are gone."""
    _FDS[folder] = fd = os.open(folder, _HOW)
    with contextlib.suppress(BlockingIOError):  # who looks just now whether it is held
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


def let_go(folder: Path) -> None:
    """Hold a folder no longer."""
    if (fd := _FDS.pop(folder, None)) is not None:
        os.close(fd)


def is_held(folder: Path) -> bool:
    """Return whether any process holds a folder; False of one that cannot be opened."""
    try:
        fd = os.open(folder, _HOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
