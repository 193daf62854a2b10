"""Ties a process to its parent, so that nothing goes on judging for somebody who is gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that started it ends (prctl(2)).

    Ends it at once where `parent_pid` is already gone. Takes no Python locks, so it may stand
    between fork and exec.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delay a polite request to end this process until the block has kept what it starts."""
    waiting: list[int] = []
    usual = signal.signal(signal.SIGTERM, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)
        for number in waiting:
            os.kill(os.getpid(), number)
