"""Collects what ranks print, without ever waiting for them and without keeping more than a cap."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from dataclasses import dataclass, field

from evaluator.messages.report import RankLog
from evaluator.messages.text import plain_text

READ_BYTES = 64 << 10
PAUSE_S = 0.01


@dataclass
class _Capped:
    """Keeps the head and the tail of a stream, each at most `half` bytes."""

    half: int
    head: bytearray = field(default_factory=bytearray)
    tail: deque[bytes] = field(default_factory=deque)
    tail_bytes: int = 0
    dropped_bytes: int = 0

    def add(self, chunk: bytes) -> None:
        """Take more of the stream."""
        room = self.half - len(self.head)
        self.head += chunk[:room]
        if rest := chunk[room:]:
            self.tail.append(rest)
            self.tail_bytes += len(rest)
        while self.tail_bytes > self.half:
            first = self.tail.popleft()
            excess = min(len(first), self.tail_bytes - self.half)
            self.tail_bytes -= excess
            self.dropped_bytes += excess
            if len(first) > excess:
                self.tail.appendleft(first[excess:])

    def text(self) -> str:
        """Return what is kept, with a line for what is not."""
        gap = f"\n… {self.dropped_bytes} bytes not kept …\n".encode() if self.dropped_bytes else b""
        text = plain_text(bytes(self.head) + gap + b"".join(self.tail))
        shown = text.encode()
        if len(shown) <= 2 * self.half + len(gap):
            return text
        # What is no text takes three bytes as U+FFFD, and is cut like the rest.
        head, tail = shown[: self.half], shown[-self.half :]
        return f"{head.decode(errors='ignore')}\n… not kept …\n{tail.decode(errors='ignore')}"


class LogCollector:
    """Drains one pipe per rank in a thread; a flood slows down only the rank that causes it."""

    def __init__(self, cap_bytes: int) -> None:
        self._cap_bytes = cap_bytes
        self._streams: dict[int, _Capped] = {}
        self._heard: dict[int, _Capped] = {}
        self._lock = threading.Lock()
        self._ranks: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open_pipe(self, rank: int) -> int:
        """Return the write end for `rank` (-1: the sandbox itself); its caller closes it."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        self._ranks[read] = rank
        self._streams[rank] = _Capped(half=self._cap_bytes // 2)
        return write

    def start(self) -> None:
        """Begin to drain the pipes that are open."""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def heard(self) -> tuple[RankLog, ...]:
        """Return what each rank has printed since the last call."""
        with self._lock:
            heard, self._heard = self._heard, {}
        return tuple(RankLog(rank=rank, text=own.text()) for rank, own in sorted(heard.items()))

    def finish(self) -> tuple[RankLog, ...]:
        """Stop, take what is still in the pipes and return every log that is not empty."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for fd in list(self._ranks):
            self._take(fd)
            os.close(fd)
        self._ranks.clear()
        return tuple(
            RankLog(rank=rank, text=stream.text(), dropped_bytes=stream.dropped_bytes)
            for rank, stream in sorted(self._streams.items())
            if stream.head
        )

    def _drain(self) -> None:
        open_fds = set(self._ranks)
        while open_fds and not self._stop.wait(PAUSE_S):
            ready, _, _ = select.select(list(open_fds), [], [], 0)
            open_fds -= {fd for fd in ready if not self._take(fd)}

    def _take(self, fd: int) -> bool:
        try:
            chunk = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return True
        rank = self._ranks[fd]
        self._streams[rank].add(chunk)
        with self._lock:
            self._heard.setdefault(rank, _Capped(half=self._cap_bytes // 2)).add(chunk)
        return bool(chunk)
