"""Reduce: one rank ends with the sum of everybody's matrix."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, tolerances

problem = Problem(
    number=4,
    title="Reduce to one rank (sum)",
    source="NVIDIA/nccl",
    domain="NVIDIA/nccl",
    summary="Sum every rank's matrix onto one rank; the others return a copy of their own.",
    statement="Every rank of the default process group calls solution(tensor, dst) with its "
    "own matrix of shape [M, N] and the same rank number dst (0 when left out); all ranks "
    "agree on shape and dtype. On rank dst return a new contiguous tensor that holds the "
    "elementwise sum of all ranks' matrices. On every other rank return a new tensor that "
    "equals its own matrix. The argument must stay as it is. M and N may be any positive "
    "integers, dst any rank, and dst may differ from call to call.",
    outputs=("total",),
    tolerances=tolerances(float32=1e-6, bfloat16=2.5e-2, float16=3e-3, rms={"bfloat16": 0.089}),
    tolerance_reason="as all-reduce: each of up to 7 additions may round to the run dtype, in "
    "any order; "
    "the rms of honest answers in bfloat16 is 0.076 at most, over int8 wires 0.103 or more",
    known_issues=(
        "The result on ranks other than dst is undefined in the library's interface; PKB "
        "compares it with what NCCL leaves there, the rank's own matrix.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    return {
        "tensor": ctx.filled(ctx.rank + 1, d.m, d.n),
        "dst": ctx.choose(0, range(ctx.world_size)),
    }


def reference(tensor: torch.Tensor, dst: int = 0) -> torch.Tensor:
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.reduce(total, dst=dst)
    if dist.get_rank() != dst:
        total.copy_(tensor)  # gloo leaves partial sums here
    return total


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Rank dst receives one sum of the others' matrices. They can form it while they receive less:
    W-2 sums of two, shared out among W-1 ranks; so can all ranks share out the W-1 additions."""
    full = d.m * d.n
    return Cost(
        wire_bytes=full * itemsize,
        flops=(world_size - 1) / world_size * full,
        hbm_bytes=2 * full * itemsize,
    )
