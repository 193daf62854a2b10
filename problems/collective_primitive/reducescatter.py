"""Reduce-scatter: everybody ends with its own rows of the sum."""

import torch
import torch.distributed as dist

from problems.collectives import reduce_scatter_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=7,
    title="Reduce-scatter (sum)",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Sum a tall matrix over ranks and leave each rank with its own block of rows.",
    statement="Every rank of the default process group calls solution(tensor) with its own "
    "matrix of shape [W*M, N], for W ranks; all ranks agree on shape and dtype. Return a new "
    "contiguous tensor of shape [M, N] that holds, on rank r, rows r*M to (r+1)*M-1 of the "
    "elementwise sum of all ranks' matrices. The argument must stay as it is. M and N may be "
    "any positive integers.",
    outputs=("block",),
    sizes=sizes(large=(4096, 8192)),
    tolerances=tolerances(float32=1e-6, bfloat16=2.5e-2, float16=3e-3, rms={"bfloat16": 0.095}),
    tolerance_reason="as all-reduce: each of up to 7 additions may round to the run dtype, in "
    "any order; "
    "the rms of honest answers in bfloat16 is 0.078 at most, over int8 wires 0.115 or more",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, rows=world_size * m)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {"tensor": ctx.filled(ctx.rank + 1, d.rows, d.n)}


def reference(tensor: torch.Tensor) -> torch.Tensor:
    block = tensor.new_empty(tensor.shape[0] // dist.get_world_size(), *tensor.shape[1:])
    dist.reduce_scatter_tensor(block, tensor.contiguous())
    return block


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """A rank has to send all that others need of its matrix, W-1 blocks of values that no sum can
    merge, so W ranks receive W*(W-1) of them: the busiest W-1, in whatever tree sums are formed."""
    full = d.rows * d.n * itemsize
    block = d.m * d.n
    return Cost(
        wire_bytes=reduce_scatter_bytes(full, world_size),
        flops=(world_size - 1) * block,
        hbm_bytes=full + block * itemsize,
    )
