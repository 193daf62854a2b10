"""Lays out the control page that the judge and one rank share, in a memfd that nobody can shrink.

The judge writes a go sequence, a command, the slots of a batch, a plan (JSON), and for a gated call
the key of its inputs and the gate. The rank writes how far it is, what it commits to, when it fails
a claim, and over a plan that it has read what it is asked about a profile.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from enum import IntEnum

MAX_BATCH = 1024
PLAN_OFFSET = 64 << 10
PLAN_BYTES = 4 << 20
CLAIM_OFFSET = 32 << 10
CLAIM_BYTES = 16 << 10
CONTROL_BYTES = PLAN_OFFSET + PLAN_BYTES
# A GPU reads KEY with GATE, and writes COMMITMENT with DONE, as one word of 16 bytes each.
# Words of eight bytes: the judge's, from INDICES on as many as a batch has calls, and the rank's.
GO, COMMAND, BATCH, PLAN_LENGTH, CORE, KEY, GATE, INDICES = 0, 1, 2, 3, 4, 6, 7, 16
COMMITMENT, DONE, QUEUED, CLAIM_LENGTH, ANSWER_LENGTH = 2048, 2049, 2050, 2051, 2052
WORDS_BYTES = CLAIM_OFFSET  # what a GPU may reach
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Command(IntEnum):
    """Names what a go asks of a rank."""

    CALL = 0
    LOAD_PLAN = 1
    PROFILE = 2
    DEVICE_CODE = 3
    TASK = 4
    GATED = 5
    WARM_UP = 6
    EMPTY = 7
    SERIES = 8
    GATED_EMPTY = 9


class ControlPage:
    """Maps the page of a descriptor, which stays its owner's; either side counts its commands."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, CONTROL_BYTES)
        self._words = memoryview(self._map).cast("Q")
        self._sequence = 0

    def _bytes(self, offset: int, nbytes: int) -> bytes:
        return self._map[offset : offset + nbytes]

    def _write(self, offset: int, given: bytes) -> None:
        self._map[offset : offset + len(given)] = given


def sealed_memfd(name: str, size_bytes: int) -> int:
    """Make a memfd that keeps its size: truncating a mapped file would kill the judge by SIGBUS."""
    fd = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, size_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd
