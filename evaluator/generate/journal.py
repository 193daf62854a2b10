"""Keeps what happened in one attempt, event by event, so that nothing that happened happens again.

Whoever tries an attempt asks the journal for each effect (an answer, a judge's finding). What is
recorded is returned as it was; only what is not is made to happen, and recorded. Going on after a
crash, packing and replaying are all the same walk through the events.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]
ANSWERS = ("replied", "failed", "judged", "ran")


class Diverged(Exception):
    """Says that today's code asks for something else than what is recorded."""


class Exhausted(Exception):
    """Says that a replay has come to the end of what is recorded."""


class Journal:
    """Holds the events of an attempt; `write` appends one, and is None where nothing may happen."""

    def __init__(
        self, events: Sequence[Event], write: Callable[[Event], Event] | None = None
    ) -> None:
        self.events = list(events)
        self._unread = deque(event for event in events if event["kind"] in ANSWERS)
        self._write = write

    def effect(self, key: str, happen: Callable[[], Event]) -> Event:
        """Return the next event, which answers what `key` stands for. Raises Diverged, and
        Exhausted in a replay."""
        if self._unread:
            event = self._unread.popleft()
            if event["key"] != key:
                raise Diverged("the run was made by another version: its prompts or steps differ")
            return event
        if self._write is None:
            raise Exhausted
        return self.append({**happen(), "key": key})

    def append(self, event: Event) -> Event:
        """Record an event, safe from a crash once this returns."""
        if self._write is None:
            raise Exhausted
        self.events.append(self._write({**event, "at": round(time.time(), 3)}))
        return self.events[-1]

    @property
    def end(self) -> Event | None:
        """Return how the attempt ended; None while it may go on."""
        last = self.events[-1] if self.events else None
        return last if last and last["kind"] == "ended" else None

    @property
    def stop(self) -> str:
        """Return what an attempt that may go on was last stopped by."""
        last = self.events[-1] if self.events else {}
        return str(last.get("reason", "unfinished"))


def read_events(path: Path) -> list[Event]:
    """Return the events of a file, none where there is no file; half a last line is none."""
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line]


def appender(path: Path, scrub: Callable[[Any], Any]) -> Callable[[Event], Event]:
    """Return what appends events to a file, each scrubbed and on the disk before it returns it as
    it will be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _cut_half_line(path)

    def write(event: Event) -> Event:
        line = json.dumps(scrub(event), sort_keys=True) + "\n"
        is_new = not path.exists()
        with path.open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _sync_folder(path.parent)
        read: Event = json.loads(line)
        return read

    return write


def _cut_half_line(path: Path) -> None:
    """Remove what a crash left of a line."""
    if path.exists():
        data = path.read_bytes()
        os.truncate(path, data.rfind(b"\n") + 1)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
