"""All-gather: everybody ends with everybody's matrix."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=2,
    title="All-gather",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Collect every rank's matrix on every rank, stacked in rank order.",
    statement="Every rank of the default process group calls solution(tensor) with its own "
    "matrix of shape [M, N]; all ranks agree on shape and dtype. Return a new contiguous "
    "tensor of shape [W, M, N], the same on every rank, whose slice i is rank i's matrix, for "
    "W ranks. The argument must stay as it is. M and N may be any positive integers.",
    outputs=("stack",),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.filled(ctx.rank + 1, d.m, d.n)}


def reference(tensor: torch.Tensor) -> torch.Tensor:
    stack = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    dist.all_gather_into_tensor(stack.view(-1), tensor.contiguous().view(-1))
    return stack


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    shard = d.m * d.n * itemsize
    return Cost(
        wire_bytes=all_gather_bytes(shard, world_size),
        flops=0,
        hbm_bytes=(1 + world_size) * shard,
    )
