"""All-to-all: everybody sends everybody one matrix."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=8,
    title="All-to-all (equal chunks)",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Each rank holds one matrix per destination and ends with one from every source.",
    statement="Every rank of the default process group calls solution(tensor) with its own "
    "stack of shape [W, M, N], for W ranks; slice d is addressed to rank d. All ranks agree on "
    "shape and dtype. Return a new contiguous tensor of shape [W, M, N] whose slice s is, on "
    "rank r, the slice r of rank s's stack. The argument must stay as it is. M and N may be "
    "any positive integers.",
    outputs=("received",),
    sizes=sizes(large=(4096, 8192)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    ranked_from=4,
    ranked_from_reason="of two ranks the neighbour is every other: one swap is enough",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    slices = [ctx.filled(10 * ctx.rank + i, d.m, d.n) for i in range(ctx.world_size)]
    return {"tensor": torch.stack(slices)}


def reference(tensor: torch.Tensor) -> torch.Tensor:
    received = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    dist.all_to_all_single(received, tensor.contiguous())
    return received


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = world_size * d.m * d.n * itemsize
    return Cost(
        wire_bytes=all_to_all_bytes(full, world_size),
        flops=0,
        hbm_bytes=2 * full,
    )
