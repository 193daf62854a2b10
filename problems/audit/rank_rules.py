"""State rules that every problem keeps when its reference runs on gloo ranks. See also rules."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.audit.screen import outcome, screen
from problems.limits import compared
from problems.running.calls import (
    Inputs,
    Outputs,
    drawn,
    keys_of_ties,
    mapped,
    mutated,
    true_answer,
)
from problems.running.mesh import arguments, mesh_groups
from problems.running.ranks import RankPool
from problems.spec import UPSTREAM_TOLERANCE, Tolerance
from problems.trials import PROFILES, TrialSpec, correctness_trials, plain_trial
from problems.values import equal_tensors, named_outputs

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# Offsets of tcpi_bytes_sent and tcpi_bytes_received in Linux's struct tcp_info.
TCP_INFO_BYTES_SENT, TCP_INFO_BYTES_RECEIVED = 200, 128


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Hold a problem on one rank, ready to be called."""

    module: ProblemModule
    inputs: Inputs
    groups: Mapping[str, ProcessGroup]


def reference_equals_oracle(ranks: RankPool, name: str) -> list[str]:
    """Compare one tiny call in each run dtype and profile with the oracle, by our own tolerance, or
    PKB's where the inputs are PKB's: some of those let rounding decide whole values."""
    return [
        f"{profile}, rank {rank} of {ranks.world_size}: {fault}"
        for profile in PROFILES
        for rank, faults in enumerate(ranks.run(_oracle_faults, name, profile))
        for fault in faults
    ]


def reference_moves_its_cost(ranks: RankPool, name: str) -> list[str]:
    """Complain of a reference that moves fewer bytes than `cost` says must move.

    A cost counts what the busiest rank sends or what it receives, whichever is more.
    """
    module = problems.load(name)
    size, world_size = module.problem.sizes["tiny"], ranks.world_size
    least = module.cost(module.dims(size.m, size.n, world_size), world_size, 4).wire_bytes
    moved = max(max(sent, received) for sent, received in bytes_moved(ranks, name))
    if moved >= least:
        return []
    return [f"the busiest rank of the reference moved {moved} bytes, the cost says {least:g}"]


def settle_bears_anything(ranks: RankPool, name: str) -> list[str]:
    """Complain of a `settle` that raises at, or makes right, nonsense that a submission wrote."""
    if problems.load(name).settle is None:
        return []
    return [fault for faults in ranks.run(_settle_faults, name) for fault in faults]


def compared_toml_fits(ranks: RankPool, name: str) -> list[str]:
    """Complain where compared.toml is wrong, or says too little, of a problem's outputs."""
    return sorted({fault for faults in ranks.run(_untold, name) for fault in faults})


def screen_finds_nothing(ranks: RankPool, name: str) -> list[str]:
    if not problems.load(name).problem.scored:
        return []  # says in public why no inputs can do it
    return [
        f"{f.answer} is {'accepted' if f.accepted else 'rejected'}: {f.why}"
        for f in screen(ranks, name, "hardened")
        if not f.as_it_should_be
    ]


RANK_RULES = (
    reference_equals_oracle,
    reference_moves_its_cost,
    settle_bears_anything,
    compared_toml_fits,
    screen_finds_nothing,
)


def _stage(
    rank: int,
    world_size: int,
    module: ProblemModule,
    spec: TrialSpec,
    *,
    profile: str = "hardened",
    dtype: torch.dtype = torch.float32,
) -> Stage:
    d = module.dims(spec.m, spec.n, world_size)
    groups = mesh_groups(module.problem.mesh, d, rank, world_size)
    how = {"profile": profile, "dtype": dtype, "secret": b"rules"}
    _, inputs = drawn(module, spec, rank, world_size, **how)
    return Stage(module=module, inputs=inputs, groups=groups)


def _oracle_faults(rank: int, world_size: int, name: str, profile: str) -> list[str]:
    module = problems.load(name)
    spec = correctness_trials(module.problem, "tiny", profile, 1, b"rules")[0]
    faults = []
    for dtype in DTYPES:
        stage = _stage(rank, world_size, module, spec, profile=profile, dtype=dtype)
        tolerances = [module.problem.tolerances[str(dtype).removeprefix("torch.")]]
        if profile == "upstream":
            tolerances.append(UPSTREAM_TOLERANCE)
        faults += [f"{dtype}: {fault}" for fault in _call_faults(stage, tolerances)]
    return faults


def _call_faults(stage: Stage, tolerances: Sequence[Tolerance]) -> list[str]:
    """Complain of one call of the reference that no tolerance accepts."""
    problem = stage.module.problem
    used = mapped(stage.inputs, torch.clone)
    returned = stage.module.reference(*arguments(used, stage.groups))
    outputs = [tensor for _, tensor in named_outputs(problem.outputs, returned)]
    got = (*outputs, *mutated(problem, used))
    truth, keys = _truth(stage)
    if stage.module.settle is not None:
        got = stage.module.settle(got, truth, keys)
    faults = [f"output of shape {tuple(o.shape)} has gaps" for o in outputs if _has_gaps(o)]
    reasons = [
        why
        for tolerance in tolerances
        if (why := outcome(got, truth, [tolerance] * len(truth)).why)
    ]
    if len(reasons) == len(tolerances):
        faults.append(reasons[0])
    return faults + [
        f"{name} was changed"
        for name in stage.inputs
        if name not in problem.mutates and not equal_tensors(stage.inputs[name], used[name])
    ]


def _truth(stage: Stage) -> tuple[Outputs, Outputs]:
    given = (stage.module, stage.inputs, stage.groups)
    return tuple(t for _, t in true_answer(*given)), keys_of_ties(*given)


def _settle_faults(rank: int, world_size: int, name: str) -> list[str]:
    module = problems.load(name)
    assert module.settle is not None
    spec = correctness_trials(module.problem, "tiny", "hardened", 1, b"rules")[0]
    stage = _stage(rank, world_size, module, spec)
    truth, keys = _truth(stage)
    faults = []
    for value in (0, -1, 1 << 62, None):
        got = tuple(_filled(t, value) for t in truth)
        settled = module.settle(got, truth, keys)
        tolerance = module.problem.tolerances["float32"]
        if outcome(settled, truth, [tolerance] * len(truth)).why is None:
            faults.append(f"settle makes outputs full of {value} right")
    return faults


def _untold(rank: int, world_size: int, name: str) -> list[str]:
    module = problems.load(name)
    spec = correctness_trials(module.problem, "tiny", "hardened", 1, b"rules")[0]
    wanted, told = _to_tell(_stage(rank, world_size, module, spec)), compared(module.slug)
    has = {(kind, output) for kind in ("whole", "free") for output in getattr(told, kind)}
    lacking = wanted - has - {("notes", output) for output in told.notes}
    unknown = set(told.notes) - {*module.problem.outputs, *module.problem.mutates}
    return [
        *(f"compared.toml lacks {kind} {output}" for kind, output in sorted(lacking)),
        *(f"compared.toml has {kind} {output}" for kind, output in sorted(has - wanted)),
        *(f"compared.toml has a note of {output}, no output" for output in sorted(unknown)),
    ]


def _to_tell(stage: Stage) -> set[tuple[str, str]]:
    """Return kinds and names that compared.toml must have, by the types of one answer and by what
    `settle` replaces in it."""
    module = stage.module
    named = true_answer(module, stage.inputs, stage.groups)
    got = settled = tuple(tensor.clone() for _, tensor in named)
    if module.settle is not None:
        keys = keys_of_ties(module, stage.inputs, stage.groups)
        settled = module.settle(got, tuple(tensor for _, tensor in named), keys)
    found = set()
    for (name, true), mine, best in zip(named, got, settled, strict=True):
        output = name.partition("[")[0]
        limit = module.problem.tolerance("hardened", "float32", output)
        if limit.atol and not (true.is_floating_point() or true.is_complex()):
            found.add(("whole", output))
        if best is true:
            found.add(("free", output))
        elif best is not mine or true.is_complex():
            found.add(("notes", output))
    return found


def _filled(like: Tensor, value: int | None) -> Tensor:
    """Fill with `value`; None stands for NaN, and for zero where the values are integers."""
    if like.is_floating_point():
        return torch.full_like(like, nan if value is None else value, dtype=torch.float32)
    return torch.full_like(like, min(value or 0, torch.iinfo(like.dtype).max))


def bytes_moved(ranks: RankPool, name: str) -> list[tuple[int, int]]:
    """Return by rank the bytes that its sockets send and receive in one call of the reference.

    Read the kernel's counters only while no rank calls anything. Between barriers of gloo a rank
    that is ahead would already send to a rank that has not read its counters yet.
    """
    ranks.run(_stage_plainly, name)  # opens connections of the problem's groups
    before = ranks.run(_socket_bytes_of_rank)
    ranks.run(_call_plainly, name)
    after = ranks.run(_socket_bytes_of_rank)
    return [
        (last_sent - sent, last_received - received)
        for (sent, received), (last_sent, last_received) in zip(before, after, strict=True)
    ]


def _stage_plainly(rank: int, world_size: int, name: str) -> None:
    _plain_stage(rank, world_size, name)


def _call_plainly(rank: int, world_size: int, name: str) -> None:
    stage = _plain_stage(rank, world_size, name)
    stage.module.reference(*arguments(stage.inputs, stage.groups))


def _plain_stage(rank: int, world_size: int, name: str) -> Stage:
    module = problems.load(name)
    return _stage(rank, world_size, module, plain_trial(module.problem, "tiny"))


def _socket_bytes_of_rank(rank: int, world_size: int) -> tuple[int, int]:
    return socket_bytes()


def _has_gaps(output: Tensor) -> bool:
    return not output.is_contiguous()


def socket_bytes() -> tuple[int, int]:
    """Return the bytes that this process has sent and received on all of its sockets."""
    descriptors = [int(path.name) for path in Path("/proc/self/fd").iterdir() if path.is_socket()]
    counts = [_tcp_bytes(descriptor) for descriptor in descriptors]
    return sum(sent for sent, _ in counts), sum(received for _, received in counts)


def _tcp_bytes(descriptor: int) -> tuple[int, int]:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family == socket.AF_UNIX:
            return 0, 0
        info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    (sent,) = struct.unpack_from("Q", info, TCP_INFO_BYTES_SENT)
    (received,) = struct.unpack_from("Q", info, TCP_INFO_BYTES_RECEIVED)
    return int(sent), int(received)
