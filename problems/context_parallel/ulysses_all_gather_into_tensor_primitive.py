"""Ulysses' all-gather: equal shards, one after the other along the first dimension."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=34,
    title="Ulysses all-gather along dimension 0 (single buffer)",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Collect every rank's matrix on every rank, one below the other.",
    statement="Every rank of group (None means the default process group), of W ranks, calls "
    "solution(x, group) with its own matrix x of shape [M, N]; all ranks agree on shape and "
    "dtype. Return a new contiguous tensor of shape [W*M, N], the same on every rank, whose rows "
    "j*M to (j+1)*M-1 are the matrix of the group's rank j. The argument must stay as it is. M "
    "and N may be any positive integers.",
    outputs=("rows",),
    also=("Sequence Parallel", "Collective Primitive"),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"x": ctx.randn(d.m, d.n), "group": None}


def reference(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    rows = x.new_empty(dist.get_world_size(group) * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(rows, x.contiguous(), group=group)
    return rows


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    shard = d.m * d.n * itemsize
    return Cost(
        wire_bytes=all_gather_bytes(shard, world_size),
        flops=0,
        hbm_bytes=(1 + world_size) * shard,
    )
