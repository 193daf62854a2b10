"""Gives a rank its commands, and reads from the control page what the rank says.

Nothing that the rank writes is believed beyond "I say that I am done": the judge reads whole words
and bounded bytes, never structures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evaluator.buffers import control_page as page
from evaluator.buffers.control_page import DONE, GATE, KEY, Command, ControlPage


class Control(ControlPage):
    """Holds the judge's half of one rank's control page."""

    def stage(self, command: Command, indices: tuple[int, ...] = ()) -> None:
        """Set what the next go means; the rank reads it only after the go.

        Raises ValueError for more than MAX_BATCH slots.
        """
        if len(indices) > page.MAX_BATCH:
            raise ValueError(f"a batch has at most {page.MAX_BATCH} calls")
        self._words[page.COMMAND] = command
        self._words[page.BATCH] = len(indices)
        for position, index in enumerate(indices):
            self._words[page.INDICES + position] = index

    def write_plan(self, plan: dict[str, Any]) -> None:
        """Write what the next command needs. Raises ValueError for more than PLAN_BYTES of JSON."""
        text = json.dumps(plan, separators=(",", ":")).encode()
        if len(text) > page.PLAN_BYTES:
            raise ValueError(f"the plan has {len(text)} bytes, more than {page.PLAN_BYTES}")
        self._write(page.PLAN_OFFSET, text)
        self._words[page.PLAN_LENGTH] = len(text)

    def pin(self, core: int | None) -> None:
        """Keep the rank's main thread, from the next plan on, to this processor, or with None to
        its rank's share of them."""
        self._words[page.CORE] = 0 if core is None else core + 1

    def next_sequence(self) -> int:
        """Count one more command, which the rank does not see until its release."""
        self._sequence += 1
        return self._sequence

    def release(self, sequence: int) -> None:
        """Say go. An oracle worker may do it too, right after it wrote the inputs."""
        self._words[page.GO] = sequence

    @property
    def is_done(self) -> bool:
        """Return whether the rank says that it has done the last command that was counted here."""
        return self._words[DONE] == self._sequence

    @property
    def is_ahead(self) -> bool:
        """Return whether the rank says that it has done a command that was never given."""
        return self._words[DONE] > self._sequence

    @property
    def is_queued(self) -> bool:
        """Return whether the rank says that its whole call waits behind the gate. Untrusted."""
        return self._words[page.QUEUED] == self._sequence

    @property
    def commitment(self) -> int:
        """Return the 64 bits that the rank commits to, once it is done. Untrusted."""
        return self._words[page.COMMITMENT]

    @property
    def claim(self) -> bytes:
        """Return what the rank says of its failure, empty while it has not failed. Untrusted."""
        length = min(self._words[page.CLAIM_LENGTH], page.CLAIM_BYTES)
        return self._bytes(page.CLAIM_OFFSET, length)

    @property
    def answer(self) -> bytes:
        """Return what the rank wrote over its plan. Untrusted."""
        length = min(self._words[page.ANSWER_LENGTH], page.PLAN_BYTES)
        return self._bytes(page.PLAN_OFFSET, length)


def open_gates(controls: Sequence[Control], keys: Sequence[int]) -> None:
    """Make the inputs of the last command readable on every rank, each with its key."""
    for control, key in zip(controls, keys, strict=True):
        control._words[KEY] = key
        control._words[GATE] = control._sequence


def are_done(controls: Sequence[Control], looks: int) -> bool:
    """Return True once all ranks say that they have done the last command, False after so many
    looks at one. It runs while the clock does, and some processors take twice as long for Python
    as others: so a look is one comparison."""
    for control in controls:
        words, sequence = control._words, control._sequence
        for _ in range(looks):
            if words[DONE] == sequence:
                break
        else:
            return False
    return True
