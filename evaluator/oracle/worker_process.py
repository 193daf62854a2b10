"""Serves one oracle rank as a process of its own: forked once, for one run after another."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import torch

import problems
from evaluator.buffers.control import Control
from evaluator.host.cores import Cores
from evaluator.messages.job import Job, Placement
from evaluator.oracle.rank import OracleRank
from problems.running.mesh import join_world, mesh_groups


@dataclass(frozen=True, kw_only=True)
class WorkerSetup:
    """Says which rank a process serves; `store` is the file at which the ranks meet."""

    rank: int
    world_size: int
    device: str
    store: str
    cores: Cores | None
    placement: Placement = Placement.FULL


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Begins a run: the secret that its inputs come from, that of its canaries, which no two runs
    share, and the sides, each with a control page whose descriptors follow."""

    job: Job
    problem: str
    secret: bytes
    canary_secret: bytes
    sides: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """Asks for a method of OracleRank, sent by reference, with its arguments."""

    command: Callable[..., Any]
    arguments: tuple[object, ...]


def serve(setup: WorkerSetup, orders: Connection) -> None:
    """Obey the judge until its end of the pipe closes.

    Answers ("ok", value), ("full", text) where memory is too little, or ("error", text).
    """
    torch.set_num_threads(1)
    _spread(setup)
    is_shared = setup.placement is Placement.SHARED
    meeting = (setup.device, setup.store, setup.rank, setup.world_size)
    device = join_world(*meeting, is_shared=is_shared)
    own: OracleRank | None = None
    while True:
        try:
            order: Assignment | Order = orders.recv()
        except EOFError:
            return
        answer = None
        try:
            if isinstance(order, Assignment):
                own = _begin(setup, device, order, orders)
            else:
                answer = order.command(own, *order.arguments)
        except Exception as error:  # noqa: BLE001 - a process boundary: the judge raises it again
            is_full = isinstance(error, torch.OutOfMemoryError)
            orders.send(("full" if is_full else "error", f"{type(error).__name__}: {error}"))
            continue
        orders.send(("ok", answer))
        if isinstance(order, Order) and order.command is OracleRank.attach:
            _hand_over(orders, [fd for fd, _ in answer or ()])


def _spread(setup: WorkerSetup) -> None:
    """Use all of this rank's cores.

    Joining and connecting, this thread spins for answers of NCCL's own threads. They stay on the
    processors that they were started on, which have to be more than the one it spins on.
    """
    if setup.cores:
        os.sched_setaffinity(0, setup.cores.helping[setup.rank])


def _begin(
    setup: WorkerSetup, device: torch.device, assigned: Assignment, orders: Connection
) -> OracleRank:
    """Receive the control pages and make the rank of a run. Collective over the oracle's ranks."""
    job, module = assigned.job, problems.load(assigned.problem)
    controls = {}
    for side in assigned.sides:
        fd = recv_handle(orders)
        controls[side] = Control(fd)
        os.close(fd)
    size = module.problem.sizes[job.size]
    dims = module.dims(size.m, size.n, setup.world_size)
    return OracleRank(
        job=job,
        rank=setup.rank,
        module=module,
        secret=assigned.secret,
        canary_secret=assigned.canary_secret,
        controls=controls,
        device=device,
        groups=mesh_groups(module.problem.mesh, dims, setup.rank, setup.world_size),
    )


def _hand_over(pipe: Connection, fds: Sequence[int]) -> None:
    """Send descriptors behind a message, and close them here."""
    for fd in fds:
        send_handle(pipe, fd, 0)
        os.close(fd)
