"""One of the judge's ranks as a process: forked once, it serves one run after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle

import torch

import problems
from evaluator.buffers.control import Control
from evaluator.host.cores import Cores
from evaluator.messages.job import Job
from evaluator.oracle.rank import JudgeRank
from problems.mesh import join_world, mesh_groups


@dataclass(frozen=True, kw_only=True)
class Seat:
    """Where a rank of the judge's sits; `store` is the file at which they meet."""

    rank: int
    world_size: int
    device: str
    store: str
    cores: Cores | None


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A run: the secret that its inputs come from, and the sides, each with a control page."""

    job: Job
    problem: str
    secret: bytes
    sides: tuple[str, ...]


def serve(seat: Seat, commands: Connection) -> None:
    """Obey the judge until its end of the pipe closes; answers ("ok", value) or ("error", text)."""
    torch.set_num_threads(1)
    _spread(seat)
    device = join_world(seat.device, seat.store, seat.rank, seat.world_size)
    own: JudgeRank | None = None
    while True:
        try:
            name, arguments = commands.recv()
        except EOFError:
            return
        answer = None
        try:
            if name == "begin":
                _spread(seat)
                own = _begin(seat, device, arguments[0], commands)
            else:
                answer = getattr(own, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - a process boundary: the judge raises it again
            is_full = isinstance(error, torch.OutOfMemoryError)
            commands.send(("full" if is_full else "error", f"{type(error).__name__}: {error}"))
            continue
        commands.send(("ok", answer))
        if name == "attach":
            _hand_over(commands, [fd for fd, _ in answer or ()])
            _watch(seat)


def _spread(seat: Seat) -> None:
    """Joining and connecting, this thread spins for answers of NCCL's own threads. They stay on the
    processors that they were started on, which have to be more than the one it spins on."""
    if seat.cores:
        os.sched_setaffinity(0, seat.cores.helping[seat.rank])


def _watch(seat: Seat) -> None:
    """From now on this thread watches for ends of bursts, on a processor of its own."""
    if seat.cores:
        os.sched_setaffinity(0, {seat.cores.watching[seat.rank]})


def _begin(
    seat: Seat, device: torch.device, assigned: Assignment, commands: Connection
) -> JudgeRank:
    """Collective over the judge's ranks."""
    job, module = assigned.job, problems.load(assigned.problem)
    controls = {}
    for side in assigned.sides:
        fd = recv_handle(commands)
        controls[side] = Control(fd)
        os.close(fd)
    size = module.problem.sizes[job.size]
    dims = module.dims(size.m, size.n, seat.world_size)
    return JudgeRank(
        job=job,
        rank=seat.rank,
        module=module,
        secret=assigned.secret,
        controls=controls,
        device=device,
        groups=mesh_groups(module.problem.mesh, dims, seat.rank, seat.world_size),
    )


def _hand_over(pipe: Connection, fds: Sequence[int]) -> None:
    """Send descriptors behind a message, and close them here."""
    for fd in fds:
        send_handle(pipe, fd, 0)
        os.close(fd)
