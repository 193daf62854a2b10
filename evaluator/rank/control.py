"""Waits for the judge's commands on the control page, and answers them."""

from __future__ import annotations

import ctypes
import json
import os
import time
from typing import Any

from evaluator.buffers import control_page as page
from evaluator.buffers.control_page import Command, ControlPage

SPIN_S = 0.2
IDLE_SLEEP_S = 0.001
OFF_DUTY_S, OFF_DUTY_SLEEP_S = 5.0, 0.02


class RankControl(ControlPage):
    """Holds the rank's half of its control page."""

    def wait_go(self, *, armed: bool = False) -> tuple[Command, tuple[int, ...]]:
        """Return the next command and the slots of its batch, once the judge says go.

        Sleeps between looks; when `armed`, spins first, because the next go is being timed.
        """
        self._sequence += 1
        began = time.monotonic()
        while self._words[page.GO] < self._sequence:
            waited_s = time.monotonic() - began
            if armed and waited_s < SPIN_S:
                os.sched_yield()
            else:
                time.sleep(IDLE_SLEEP_S if waited_s < OFF_DUTY_S else OFF_DUTY_SLEEP_S)
        indices = self._words[page.INDICES : page.INDICES + self._words[page.BATCH]]
        return Command(self._words[page.COMMAND]), tuple(indices)

    @property
    def core(self) -> int | None:
        """Return the processor that the main thread is to keep to, if any."""
        return self._words[page.CORE] - 1 if self._words[page.CORE] else None

    def read_plan(self) -> dict[str, Any]:
        """Return what the command needs."""
        text = self._bytes(page.PLAN_OFFSET, self._words[page.PLAN_LENGTH])
        plan: dict[str, Any] = json.loads(text)
        return plan

    def write_answer(self, answer: bytes) -> None:
        """Answer a question, over the plan, with at most PLAN_BYTES."""
        answer = answer[: page.PLAN_BYTES]
        self._write(page.PLAN_OFFSET, answer)
        self._words[page.ANSWER_LENGTH] = len(answer)

    @property
    def sequence(self) -> int:
        """Return the number of the command that the rank was given last."""
        return self._sequence

    @property
    def address(self) -> int:
        """Return where the page lies in this process."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._words))

    def done(self) -> None:
        """Signal that the command is done."""
        self._words[page.DONE] = self._sequence

    def queued(self) -> None:
        """Say that all of the call waits behind the gate."""
        self._words[page.QUEUED] = self._sequence

    def wait_at_gate(self) -> int:
        """Spin until the gate opens; return the key of the inputs."""
        while self._words[page.GATE] < self._sequence:
            pass
        return self._words[page.KEY]

    def commit(self, commitment: int) -> None:
        """Commit to the outputs, and signal that the call is done."""
        self._words[page.COMMITMENT] = commitment
        self._words[page.DONE] = self._sequence

    def fail(self, claim: bytes) -> None:
        """Claim a failure, in at most CLAIM_BYTES."""
        claim = claim[: page.CLAIM_BYTES]
        self._write(page.CLAIM_OFFSET, claim)
        self._words[page.CLAIM_LENGTH] = len(claim)
