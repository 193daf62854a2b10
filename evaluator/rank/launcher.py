"""Starts the ranks as the first program in a sandbox: imports torch once, receives buffers, forks.

Our code in an untrusted place: it runs before the submission does, and nothing that it says later
is believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import select
import socket
import sys
from collections.abc import Callable

from evaluator.messages.rank_setup import HANG_REPORT_SIGNAL, receive_setup

_PR_SET_DUMPABLE = 4
# What Triton and symmetric memory import in a kernel's first call: 3 s where no bytecode is kept.
KERNELS_NEED = ("torch.fx.experimental.symbolic_shapes", "triton", "triton.compiler")


def main(channel_fd: int, *, import_early: bool, for_kernels: bool) -> int:
    """Wait for the setup and, per rank, a slab channel, a control page and a log; run the ranks."""
    if import_early:
        _import_runner()
    if for_kernels:
        _import_for_kernels()
    channel = socket.socket(fileno=channel_fd)
    setup, fds = receive_setup(channel)
    run_rank = _import_runner()
    children: dict[int, int] = {}
    wake_ends: dict[int, int] = {}
    _set_dumpable(False)  # its memory and descriptors, the channel among them, are not the ranks'
    for rank in range(setup.world_size):
        wake, wake_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            _set_dumpable(True)  # CUDA and NCCL look at themselves in /proc
            channel.close()
            own = fds[3 * rank : 3 * rank + 3]
            for fd in {*fds, wake_end, *wake_ends.values()} - set(own):
                os.close(fd)
            _redirect_output(own[2])
            if setup.cores:
                os.sched_setaffinity(0, setup.cores[rank])
            slabs = socket.socket(fileno=own[0])
            run_rank(setup, rank, slabs, control_fd=own[1], wake_fd=wake)
            os._exit(0)
        os.close(wake)
        os.set_blocking(wake_end, False)
        children[pid], wake_ends[pid] = rank, wake_end
    for fd in fds:
        os.close(fd)
    _wait_for_an_end(channel, children, wake_ends)
    return 1


def _import_runner() -> Callable[..., None]:
    """Import torch: once, before the ranks are forked."""
    from evaluator.rank.runner import run_rank

    return run_rank


def _import_for_kernels() -> None:
    """Import what kernels on GPUs mostly need, and let Triton read its own files, which it hashes
    for each process."""
    with contextlib.suppress(Exception):  # without Triton, and with another one, it takes longer
        for name in KERNELS_NEED:
            importlib.import_module(name)
        importlib.import_module("triton.runtime.cache").triton_key()


def _set_dumpable(is_dumpable: bool) -> None:
    """Say whether processes of the same user may look into this one (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, int(is_dumpable), 0, 0, 0)


def _wait_for_an_end(
    channel: socket.socket, children: dict[int, int], wake_ends: dict[int, int]
) -> None:
    """Wait until a rank ends, which is told to the judge, or until the judge is gone.

    A byte from the judge asks every rank where it is.
    """
    pidfds = {os.pidfd_open(pid): pid for pid in children}
    while True:
        ready, _, _ = select.select([channel.fileno(), *pidfds], [], [])
        for pidfd in ready:
            if pidfd in pidfds:
                pid, status = os.waitpid(pidfds[pidfd], 0)
                note = {"rank": children[pid], "code": os.waitstatus_to_exitcode(status)}
                channel.sendall(json.dumps(note).encode())
                return
        if not channel.recv(1):
            return
        for pid, wake_end in wake_ends.items():
            os.kill(pid, HANG_REPORT_SIGNAL)
            with contextlib.suppress(OSError):  # it may have closed its own, or read nothing
                os.write(wake_end, b"?")


def _redirect_output(log_fd: int) -> None:
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(log_fd)


if __name__ == "__main__":
    asked = sys.argv[2:]
    sys.exit(
        main(int(sys.argv[1]), import_early="early" in asked, for_kernels="for-kernels" in asked)
    )
