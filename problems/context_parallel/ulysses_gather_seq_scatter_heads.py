"""Ulysses before attention: from a part of the sequence to a part of the heads."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=36,
    title="Ulysses: gather the sequence, scatter the heads",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="From all heads of a part of the sequence to a part of the heads, all along it.",
    statement="x is this rank's part of a sequence, 4-D and contiguous: dimension seq_dim has T "
    "positions, dimension head_dim has H heads ([B, T, H, D] when they are 1 and 2, [B, H, T, D] "
    "when they are 2 and 1), and W, the number of ranks of group (None means the default process "
    "group), divides H. Ranks hold consecutive parts of equal length and agree on every argument "
    "but the values of x. Rank r needs the r-th of W equal runs of heads, for the whole "
    "sequence: return x with dimension seq_dim grown to W*T positions, those of rank 0 first, "
    "and head_dim cut to these H/W heads. If unpadded_dim_size is neither 0 nor a multiple of W, "
    "keep only the first unpadded_dim_size <= W*T positions. The result is a new contiguous "
    "tensor; x must stay as it is. H is 8 and D is 64; B, T, unpadded_dim_size and the order of "
    "the two dimensions may differ from call to call.",
    outputs=("heads",),
    also=("Sequence Parallel",),
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 512), large=(16384, 16384)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=(
        "head_dim is the index of a dimension, not a head's size; PKB never drops padding.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, batch=max(1, m // 64), seq=max(1, n // 64), heads=8, width=64)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    seq_dim, head_dim = ctx.choose((1, 2), ((1, 2), (2, 1)))
    middle = (d.seq, d.heads) if seq_dim < head_dim else (d.heads, d.seq)
    whole = ctx.world_size * d.seq
    return {
        "x": ctx.randn(d.batch, *middle, d.width),
        "seq_dim": seq_dim,
        "head_dim": head_dim,
        "group": None,
        "unpadded_dim_size": ctx.choose(0, (0, whole - 1, whole - ctx.world_size)),
    }


def reference(
    x: torch.Tensor,
    seq_dim: int,
    head_dim: int,
    group: dist.ProcessGroup | None = None,
    unpadded_dim_size: int = 0,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    pieces = torch.unflatten(x, head_dim, (world, -1)).movedim(head_dim, 0).contiguous()
    received = torch.empty_like(pieces)
    dist.all_to_all_single(received, pieces, group=group)
    heads = received.movedim(0, seq_dim).flatten(seq_dim, seq_dim + 1)
    if unpadded_dim_size and unpadded_dim_size % world:
        heads = heads.narrow(seq_dim, 0, unpadded_dim_size)
    return heads.contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.batch * d.seq * d.heads * d.width * itemsize
    return Cost(
        wire_bytes=all_to_all_bytes(full, world_size),
        flops=0,
        hbm_bytes=2 * full,
    )
