"""Gather: one rank ends with everybody's matrix."""

import torch
import torch.distributed as dist

from problems.collectives import gather_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=6,
    title="Gather to one rank",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Stack every rank's matrix on one rank; the others return their own.",
    statement="Every rank of the default process group calls solution(tensor, dst) with its "
    "own matrix of shape [M, N] and the same rank number dst (0 when left out); all ranks "
    "agree on shape and dtype. On rank dst return a new contiguous tensor of shape [W, M, N] "
    "whose slice i is rank i's matrix, for W ranks. On every other rank return its own matrix, "
    "as the argument itself or a copy. The argument must stay as it is. M and N may be any "
    "positive integers, dst any rank, and dst may differ from call to call.",
    outputs=("stack",),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=("PKB's harness never passes dst: under `upstream` it is left out, so 0.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    tensor = ctx.filled(ctx.rank + 1, d.m, d.n)
    dst = ctx.choose(0, range(ctx.world_size))
    return {"tensor": tensor, **ctx.pick({}, {"dst": dst})}


def reference(tensor: torch.Tensor, dst: int = 0) -> torch.Tensor:
    mine = tensor.contiguous()
    if dist.get_rank() != dst:
        dist.gather(mine, dst=dst)
        return tensor
    stack = mine.new_empty(dist.get_world_size(), *mine.shape)
    dist.gather(mine, list(stack.unbind(0)), dst=dst)
    return stack


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    part = d.m * d.n * itemsize
    return Cost(
        wire_bytes=gather_bytes(part, world_size),
        flops=0,
        hbm_bytes=(1 + world_size) * part,
    )
