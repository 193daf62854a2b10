"""Carries a side's setup, descriptors and slabs from the judge to the ranks in a sandbox."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.messages.codec import decode, encode
from evaluator.messages.job import Placement

HANG_REPORT_SIGNAL = signal.SIGURG  # LLVM, in Triton, takes SIGUSR1 and SIGUSR2 when it compiles
_JOINED = b"j"


@dataclass(frozen=True, kw_only=True)
class Task:
    """Names what a side's ranks are to call: `entry` is the text of a submission, or None for the
    reference of `problem`; the lengths of the problem's mesh follow from the sizes `m` and `n`."""

    problem: str
    m: int
    n: int
    entry: str | None = None


@dataclass(frozen=True, kw_only=True)
class RankSetup:
    """Holds what the ranks of one side need to know; sent by the judge with the descriptors.
    `cores` are each rank's, if any."""

    task: Task
    world_size: int
    threads: int
    device: str = "cpu"
    placement: Placement = Placement.FULL
    cores: tuple[tuple[int, ...], ...] = ()


def send_setup(channel: socket.socket, setup: RankSetup, fds: Sequence[int]) -> None:
    """Send the setup, then a slab channel, a control page and a log per rank."""
    text = json.dumps(encode(setup)).encode()
    channel.sendall(len(text).to_bytes(8, "little") + text)
    socket.send_fds(channel, [b"."], list(fds))


def send_slab(channel: socket.socket, fd: int, nbytes: int) -> None:
    """Send the descriptor of a rank's slab, and how many bytes it has."""
    socket.send_fds(channel, [nbytes.to_bytes(8, "little")], [fd])


def say_joined(channel: socket.socket) -> None:
    """Say that this rank has joined its group, before it looks at the source that it was given."""
    channel.sendall(_JOINED)


def has_joined(channel: socket.socket) -> bool:
    """Return whether the rank at the other end has said so. What is said stays said: nothing that
    the rank runs later can take it back."""
    with contextlib.suppress(OSError):
        return bool(channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    return False


def receive_slab(channel: socket.socket) -> tuple[int, int]:
    """Receive the descriptor of this rank's slab, and how many bytes it has."""
    size, (fd,), _, _ = socket.recv_fds(channel, 8, 1)
    return fd, int.from_bytes(size, "little")


def receive_setup(channel: socket.socket) -> tuple[RankSetup, list[int]]:
    """Receive the setup, and three descriptors per rank in the order of `send_setup`."""
    header = channel.recv(8, socket.MSG_WAITALL)
    length = int.from_bytes(header, "little")
    text = channel.recv(length, socket.MSG_WAITALL)
    setup = decode(RankSetup, json.loads(text))
    _, fds, _, _ = socket.recv_fds(channel, 1, 3 * setup.world_size)
    return setup, list(fds)
