"""The control page that the judge and one rank share: who may go, and who is done.

A sealed memfd, mapped by both. The judge writes a go sequence, a command, a burst of slot indices
and a plan (JSON); the rank writes a done sequence, an advisory time, when it fails a claim, and
over a plan that it has read what it is asked about a profile.
Nothing that the rank writes is believed beyond "I say that I am done": the judge reads whole words
and bounded bytes, never structures.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import time
from enum import IntEnum
from typing import Any

MAX_BURST = 1024
PLAN_OFFSET = 64 << 10
PLAN_BYTES = 4 << 20
CLAIM_OFFSET = 32 << 10
CLAIM_BYTES = 16 << 10
CONTROL_BYTES = PLAN_OFFSET + PLAN_BYTES

_GO, _COMMAND, _BURST, _PLAN_LENGTH, _CORE, _INDICES = 0, 1, 2, 3, 4, 16
_DONE, _RANK_NS, _CLAIM_LENGTH, _ANSWER_LENGTH = 2048, 2049, 2050, 2051

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
SPIN_S = 0.2
IDLE_SLEEP_S = 0.001
OFF_DUTY_S, OFF_DUTY_SLEEP_S = 5.0, 0.02


class Command(IntEnum):
    CALL = 0
    LOAD_PLAN = 1
    PROFILE = 2
    DEVICE_CODE = 3
    TAKE = 4
    LOCK = 5


def sealed_memfd(name: str, size_bytes: int) -> int:
    """A memfd that nobody can shrink: truncating a mapped file would kill the judge with SIGBUS."""
    fd = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, size_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


class Control:
    """One rank's control page; the judge's methods first, then the rank's."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, CONTROL_BYTES)
        self._words = memoryview(self._map).cast("Q")
        self._sequence = 0

    def stage(self, command: Command, indices: tuple[int, ...] = ()) -> None:
        """Set what the next go means; the rank reads it only after the go."""
        if len(indices) > MAX_BURST:
            raise ValueError(f"a burst has at most {MAX_BURST} calls")
        self._words[_COMMAND] = command
        self._words[_BURST] = len(indices)
        for position, index in enumerate(indices):
            self._words[_INDICES + position] = index

    def write_plan(self, plan: dict[str, Any]) -> None:
        text = json.dumps(plan, separators=(",", ":")).encode()
        if len(text) > PLAN_BYTES:
            raise ValueError(f"the plan has {len(text)} bytes, more than {PLAN_BYTES}")
        self._map[PLAN_OFFSET : PLAN_OFFSET + len(text)] = text
        self._words[_PLAN_LENGTH] = len(text)

    def pin(self, core: int | None) -> None:
        """From the next plan on, the rank's main thread keeps to this processor, or to its rank's
        share of them."""
        self._words[_CORE] = 0 if core is None else core + 1

    def next_sequence(self) -> int:
        """Count one more command, which the rank does not see until its release."""
        self._sequence += 1
        return self._sequence

    def release(self, sequence: int) -> None:
        """Say go. The judge's own rank may do it, right after it wrote the inputs."""
        self._words[_GO] = sequence

    @property
    def is_done(self) -> bool:
        return self._words[_DONE] == self._sequence

    def has_done(self, sequence: int) -> bool:
        """For the judge's own rank, which does not count commands."""
        return self._words[_DONE] >= sequence

    @property
    def is_ahead(self) -> bool:
        """Whether the rank claims a command that was never given."""
        return self._words[_DONE] > self._sequence

    @property
    def rank_ns(self) -> int:
        return self._words[_RANK_NS]

    @property
    def claim(self) -> bytes:
        """What the rank says of its failure, empty while it has not failed. Untrusted bytes."""
        length = min(self._words[_CLAIM_LENGTH], CLAIM_BYTES)
        return bytes(self._map[CLAIM_OFFSET : CLAIM_OFFSET + length])

    @property
    def answer(self) -> bytes:
        """What the rank wrote over its plan. Untrusted bytes."""
        length = min(self._words[_ANSWER_LENGTH], PLAN_BYTES)
        return bytes(self._map[PLAN_OFFSET : PLAN_OFFSET + length])

    def wait_go(self, *, armed: bool = False) -> tuple[Command, tuple[int, ...]]:
        """Rank: sleep between looks; when `armed`, spin, because the next go is being timed."""
        self._sequence += 1
        began = time.monotonic()
        while self._words[_GO] < self._sequence:
            waited_s = time.monotonic() - began
            if armed and waited_s < SPIN_S:
                os.sched_yield()
            else:
                time.sleep(IDLE_SLEEP_S if waited_s < OFF_DUTY_S else OFF_DUTY_SLEEP_S)
        burst = self._words[_BURST]
        indices = tuple(self._words[_INDICES : _INDICES + burst])
        return Command(self._words[_COMMAND]), indices

    @property
    def core(self) -> int | None:
        return self._words[_CORE] - 1 if self._words[_CORE] else None

    def read_plan(self) -> dict[str, Any]:
        length = self._words[_PLAN_LENGTH]
        plan: dict[str, Any] = json.loads(self._map[PLAN_OFFSET : PLAN_OFFSET + length])
        return plan

    def write_answer(self, answer: bytes) -> None:
        answer = answer[:PLAN_BYTES]
        self._map[PLAN_OFFSET : PLAN_OFFSET + len(answer)] = answer
        self._words[_ANSWER_LENGTH] = len(answer)

    def done(self, elapsed_ns: int) -> None:
        self._words[_RANK_NS] = elapsed_ns
        self._words[_DONE] = self._sequence

    def fail(self, claim: bytes) -> None:
        claim = claim[:CLAIM_BYTES]
        self._map[CLAIM_OFFSET : CLAIM_OFFSET + len(claim)] = claim
        self._words[_CLAIM_LENGTH] = len(claim)
