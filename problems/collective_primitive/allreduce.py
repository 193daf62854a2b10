"""All-reduce: everybody ends with the sum of everybody's matrix."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, tolerances

problem = Problem(
    number=1,
    title="All-reduce (sum)",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Sum every rank's matrix, elementwise, and return the sum on every rank.",
    statement="Every rank of the default process group calls solution(tensor) with its own "
    "matrix of shape [M, N]; all ranks agree on shape and dtype. Return a new contiguous "
    "tensor of the same shape and dtype that holds, on every rank, the elementwise sum of all "
    "ranks' matrices. The argument must stay as it is. M and N may be any positive integers.",
    outputs=("total",),
    tolerances=tolerances(float32=1e-6, bfloat16=2.5e-2, float16=3e-3, rms={"bfloat16": 0.092}),
    tolerance_reason="each of up to 7 additions may round to the run dtype, in any order "
    "(bfloat16, 8 ranks: 0.017 measured); float32 rejects bfloat16 on the wire (0.008), "
    "bfloat16 rejects fp8 (0.13); "
    "the rms of honest answers in bfloat16 is 0.078 at most, over int8 wires 0.109 or more",
    ranked_from=4,
    ranked_from_reason="of two ranks the neighbour is every other: its matrix alone is enough",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.filled(ctx.rank + 1, d.m, d.n)}


def reference(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.m * d.n
    return Cost(
        wire_bytes=all_reduce_bytes(full * itemsize, world_size),
        flops=(world_size - 1) / world_size * full,
        hbm_bytes=2 * full * itemsize,
    )
