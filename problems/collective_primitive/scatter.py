"""Scatter: one rank deals its matrices out, one to each rank."""

import torch
import torch.distributed as dist

from problems.collectives import scatter_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=5,
    title="Scatter",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="The source rank holds one matrix per rank; rank i receives the i-th.",
    statement="Every rank of the default process group calls solution(tensor, src) with the "
    "same rank number src (0 when left out). On rank src, tensor is a stack of shape [W, M, N] "
    "for W ranks; on every other rank it is a matrix of shape [M, N] whose values do not "
    "matter: it gives shape, dtype and device. Return a new contiguous tensor of shape [M, N] "
    "that equals slice r of rank src's stack on rank r, on rank src too. The argument must "
    "stay as it is. M and N may be any positive integers, src any rank, and src may differ "
    "from call to call.",
    outputs=("received",),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=("PKB's harness never passes src: under `upstream` it is left out, so 0.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    src = ctx.choose(0, range(ctx.world_size))
    slices = [ctx.filled(i + 1, d.m, d.n) for i in range(ctx.world_size)]
    tensor = torch.stack(slices) if ctx.rank == src else ctx.filled(0, d.m, d.n)
    return {"tensor": tensor, **ctx.pick({}, {"src": src})}


def reference(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    is_source = dist.get_rank() == src
    received = tensor.new_empty(tensor.shape[1:] if is_source else tensor.shape)
    slices = list(tensor.contiguous().unbind(0)) if is_source else None
    dist.scatter(received, slices, src=src)
    return received


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    part = d.m * d.n * itemsize
    return Cost(
        wire_bytes=scatter_bytes(part, world_size),
        flops=0,
        hbm_bytes=(1 + world_size) * part,
    )
