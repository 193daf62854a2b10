"""Ulysses after attention: from a part of the heads back to a part of the sequence."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=37,
    title="Ulysses: gather the heads, scatter the sequence",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="From some heads of the whole sequence to all heads of a part of it, zero-padded.",
    statement="x holds this rank's heads for the whole sequence, 4-D and contiguous: dimension "
    "seq_dim has T positions, dimension head_dim has H heads ([B, T, H, D] when they are 1 and "
    "2, [B, H, T, D] when they are 2 and 1). The W ranks of group (None means the default "
    "process group) hold different heads and agree on every argument but the values of x. With c "
    "= ceil(T / W), rank r needs positions r*c to (r+1)*c-1 of all ranks' heads: return x with "
    "dimension seq_dim cut to these c positions and head_dim grown to W*H heads, those of rank 0 "
    "first. Positions from T on are padding: they are zero, and stay in the result. It is a new "
    "contiguous tensor; x must stay as it is. H is 8 and D is 64; B, T, which W need not divide, "
    "and the order of the two dimensions may differ from call to call.",
    outputs=("part",),
    also=("Sequence Parallel",),
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 512), large=(16384, 16384)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=("At PKB's size W divides the sequence, so its check never sees padding.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, batch=max(1, m // 64), seq=max(1, n // 64), heads=8, width=64)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    seq_dim, head_dim = ctx.choose((1, 2), ((1, 2), (2, 1)))
    middle = (d.seq, d.heads) if seq_dim < head_dim else (d.heads, d.seq)
    return {
        "x": ctx.randn(d.batch, *middle, d.width),
        "seq_dim": seq_dim,
        "head_dim": head_dim,
        "group": None,
    }


def reference(
    x: torch.Tensor,
    seq_dim: int,
    head_dim: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    missing = -x.shape[seq_dim] % world
    if missing:
        shape = [*x.shape[:seq_dim], missing, *x.shape[seq_dim + 1 :]]
        x = torch.cat([x, x.new_zeros(shape)], dim=seq_dim)
    pieces = torch.unflatten(x, seq_dim, (world, -1)).movedim(seq_dim, 0).contiguous()
    received = torch.empty_like(pieces)
    dist.all_to_all_single(received, pieces, group=group)
    return received.movedim(0, head_dim).flatten(head_dim, head_dim + 1).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Rank 0 never holds padding when there are as many positions as ranks."""
    part = -(-d.seq // world_size)
    position = d.batch * d.heads * d.width * itemsize
    return Cost(
        wire_bytes=(world_size - 1) * part * position,
        flops=0,
        hbm_bytes=(d.seq + world_size * part) * position,
    )
