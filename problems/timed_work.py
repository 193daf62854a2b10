"""Measure how much less the calls of a timed batch need than `cost`, which is of a plain one.

Options and ragged lengths take turns in a batch, so a bound on its time has to be of their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import torch
import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode

import problems
from problems.calls import call
from problems.context import RankContext
from problems.mesh import mesh_groups
from problems.rank_rules import socket_bytes
from problems.ranks import RankPool
from problems.trials import TrialSpec, plain_trial, timed_trial
from problems.values import tensors

SLOTS = 16
SECRET = b"work"

Work = tuple[float, float, float]  # bytes received, floating-point operations, bytes in memory


def work_share(ranks: RankPool, name: str) -> float:
    """Return the mean work of a batch's calls over that of a plain call: the least of all kinds."""
    by_rank = ranks.run(work_on_rank, name)
    busiest = [
        [max(kind) for kind in zip(*slot, strict=True)] for slot in zip(*by_rank, strict=True)
    ]
    return least_share(busiest)


def least_share(busiest: Sequence[Sequence[float]]) -> float:
    """Return it of the busiest rank's work in a plain call and in those of a batch; kinds that the
    first needs none of do not count."""
    shares = [fmean(batch) / plain for plain, *batch in zip(*busiest, strict=True) if plain]
    return float(min([1.0, *shares]))


def work_on_rank(rank: int, world_size: int, name: str) -> list[Work]:
    """Return this rank's work in a plain call, then in each slot of a batch. All ranks call it."""
    problem = problems.load(name).problem
    batch = [timed_trial(problem, "tiny", slot, SECRET, slot) for slot in range(SLOTS)]
    specs = [plain_trial(problem, "tiny"), *batch]
    return [_work(rank, world_size, name, spec) for spec in specs]


def _work(rank: int, world_size: int, name: str, spec: TrialSpec) -> Work:
    module = problems.load(name)
    dims = module.dims(spec.m, spec.n, world_size)
    groups = mesh_groups(module.problem.mesh, dims, rank, world_size)
    context = RankContext(
        rank=rank,
        world_size=world_size,
        number=module.problem.number,
        spec=spec,
        profile="hardened",
        secret=SECRET,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    inputs = module.make_inputs(context, dims)
    dist.barrier()
    began = socket_bytes()
    with FlopCounterMode(display=False) as counter:
        outputs = call(module.reference, module.problem, inputs, groups)
    dist.barrier()
    given = [tensor for value in inputs.values() for tensor in tensors(value)]
    touched = sum(tensor.nbytes for tensor in (*given, *outputs))
    return socket_bytes() - began, counter.get_total_flops(), touched
