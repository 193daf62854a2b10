"""Broadcast: everybody ends with one rank's matrix."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=3,
    title="Broadcast",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Deliver the source rank's matrix to every rank.",
    statement="Every rank of the default process group calls solution(tensor, src) with a "
    "matrix of shape [M, N] and the same rank number src (0 when left out); all ranks agree on "
    "shape and dtype. Return, on every rank, a new contiguous tensor that equals rank src's "
    "matrix. The other ranks' matrices give shape and dtype only. The argument must stay as it "
    "is. M and N may be any positive integers, src any rank, and src may differ from call to "
    "call.",
    outputs=("received",),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=("PKB's harness never passes src: under `upstream` it is left out, so 0.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    tensor = ctx.filled(ctx.rank + 1, d.m, d.n)
    src = ctx.choose(0, range(ctx.world_size))
    return {"tensor": tensor, **ctx.pick({}, {"src": src})}


def reference(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    received = tensor.clone(memory_format=torch.contiguous_format)
    dist.broadcast(received, src=src)
    return received


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.m * d.n * itemsize
    return Cost(wire_bytes=full, flops=0, hbm_bytes=2 * full)
