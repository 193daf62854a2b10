"""What the tests run on gloo ranks: functions of a module, because they travel by name."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

import problems
from problems.calls import call, mapped, mutated, widened
from problems.context import RankContext
from problems.mesh import arguments, mesh_groups
from problems.screen import why_rejected
from problems.spec import Dims
from problems.trials import TrialSpec, correctness_trials, timed_trial
from problems.values import tensors

TCP_INFO_BYTES_RECEIVED = 128  # offset of tcpi_bytes_received in struct tcp_info


def context(
    name: str,
    spec: TrialSpec,
    *,
    profile: str = "hardened",
    rank: int = 0,
    world_size: int = 2,
    dtype: torch.dtype = torch.float32,
) -> RankContext:
    return RankContext(
        rank=rank,
        world_size=world_size,
        number=problems.load(name).problem.number,
        spec=spec,
        profile=profile,
        secret=b"test",
        dtype=dtype,
        device=torch.device("cpu"),
    )


def dims_of(name: str, spec: TrialSpec, world_size: int) -> Dims:
    return problems.load(name).dims(spec.m, spec.n, world_size)


def reference_against_oracle(rank: int, world_size: int, name: str, profile: str) -> list[str]:
    """What is wrong with one call of the reference in each run dtype; nothing when all is well."""
    module = problems.load(name)
    spec = correctness_trials(module.problem, "tiny", profile, 1, b"test")[0]
    d = dims_of(name, spec, world_size)
    groups = mesh_groups(module.problem.mesh, d, rank, world_size)
    faults = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        seen = context(name, spec, profile=profile, rank=rank, world_size=world_size, dtype=dtype)
        inputs = module.make_inputs(seen, d)
        used = mapped(inputs, torch.clone)
        outputs = tensors(module.reference(*arguments(used, groups)))
        truth = call(module.oracle, module.problem, mapped(inputs, widened), groups)
        tolerance = module.problem.tolerances[str(dtype).removeprefix("torch.")]
        got = outputs + mutated(module.problem, used)
        if reason := why_rejected(got, truth, tolerance):
            faults.append(f"{dtype}: {reason}")
        if len(outputs) != len(module.problem.outputs):
            faults.append(f"{dtype}: {len(outputs)} outputs, {module.problem.outputs} declared")
        faults += [f"{dtype}: output {o.shape} has gaps" for o in outputs if not o.is_contiguous()]
        faults += _changed(inputs, used, module.problem.mutates)
    return faults


def bytes_received(rank: int, world_size: int, name: str) -> int:
    """By this rank's sockets during one call of the reference, as the kernel counts them."""
    module = problems.load(name)
    spec = timed_trial(module.problem, "tiny", 0)
    d = dims_of(name, spec, world_size)
    groups = mesh_groups(module.problem.mesh, d, rank, world_size)
    inputs = module.make_inputs(context(name, spec, rank=rank, world_size=world_size), d)
    used = arguments(inputs, groups)
    dist.barrier()
    start = _socket_bytes()
    dist.barrier()
    barrier = _socket_bytes() - start
    module.reference(*used)
    dist.barrier()
    return _socket_bytes() - start - 2 * barrier


def raise_on_last_rank(rank: int, world_size: int) -> int:
    if rank == world_size - 1:
        raise ValueError("the last rank fails")
    return rank


def rank_and_world(rank: int, world_size: int) -> tuple[int, int]:
    return rank, world_size


def mesh_members(rank: int, world_size: int, ep: int) -> dict[str, list[int]]:
    d = Dims(ep=ep, ep_fsdp=world_size // ep)
    groups = mesh_groups(("ep_fsdp", "ep"), d, rank, world_size)
    return {axis: dist.get_process_group_ranks(group) for axis, group in groups.items()}


def _changed(before: dict[str, object], after: dict[str, object], allowed: object) -> list[str]:
    assert isinstance(allowed, tuple)
    return [
        f"{name} was changed"
        for name in before
        if name not in allowed and not _same(tensors(before[name]), tensors(after[name]))
    ]


def _same(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _socket_bytes() -> int:
    return sum(
        _tcp_bytes(int(path.name)) for path in Path("/proc/self/fd").iterdir() if path.is_socket()
    )


def _tcp_bytes(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family == socket.AF_UNIX:
            return 0
        info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    (received,) = struct.unpack_from("Q", info, TCP_INFO_BYTES_RECEIVED)
    return int(received)
