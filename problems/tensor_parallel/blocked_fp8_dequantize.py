"""Block-wise dequantisation: scale every block, then hand each rank its chunk."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=20,
    title="Block-wise dequantisation + all-to-all",
    source="togethercomputer/xorl",
    domain="LLM training",
    summary="Multiply each block of the local values by its scale, then exchange W chunks.",
    statement="local_y is this rank's [W, M, N] for W ranks: chunk d, local_y[d], is for rank d. "
    "Read row-major, the whole tensor consists of blocks of block_size consecutive elements, "
    "which may span rows but never chunks. local_s, [W, M*N/block_size], of the same dtype, "
    "holds their scales in the same order; scales may be negative. Multiply every element by "
    "the scale of its block, with a float32 result whatever the arguments' dtype, and send each "
    "chunk to its rank of the default process group. Return a new contiguous float32 tensor "
    "[W, M, N] whose slice s is what rank s has for this rank. Both arguments are contiguous "
    "and must stay as they are. M and N may be any positive integers whose product block_size "
    "divides; block_size (128, 64 or 32) may differ from call to call.",
    outputs=("values",),
    also=("Expert Parallel",),
    m_step=8,
    n_step=16,
    sizes=sizes(tiny=(64, 48), large=(4096, 4096)),
    tolerances=tolerances(float32=1e-6, bfloat16=1e-6, float16=1e-6),
    tolerance_reason="one float32 product: rounded once (6e-8) in float32 and exact otherwise; "
    "a result in bfloat16 is off by 4e-3, in float16 by 5e-4",
    known_issues=(
        "PKB gives plain numbers of the run dtype in place of FP8 codes; so do we.",
        "Exchanging values and scales and multiplying at the receiver moves half the bytes of "
        "the reference in 16-bit runs.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, ranks=world_size, block=128)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    block_size = ctx.choose(d.block, (d.block, 32, 64))
    return {
        "local_y": ctx.randn(d.ranks, d.m, d.n),
        "local_s": ctx.randn(d.ranks, d.m * d.n // block_size),
        "block_size": block_size,
    }


def reference(local_y: torch.Tensor, local_s: torch.Tensor, block_size: int = 128) -> torch.Tensor:
    wide = torch.promote_types(local_y.dtype, torch.float32)
    values = local_y.to(wide).view(-1, block_size) * local_s.to(wide).view(-1, 1)
    received = torch.empty_like(values)
    dist.all_to_all_single(received, values)
    return received.view(local_y.shape)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    values = world_size * d.m * d.n
    stored = (1 + 1 / d.block) * itemsize  # bytes per element, with its share of a scale
    return Cost(
        wire_bytes=all_to_all_bytes(values * min(stored, 4), world_size),
        flops=values,
        hbm_bytes=values * (stored + 4),
    )
