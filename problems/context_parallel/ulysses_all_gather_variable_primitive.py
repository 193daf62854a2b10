"""Ulysses' all-gather of shards whose lengths only their owners know."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=35,
    title="Ulysses all-gather of shards of different lengths",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Concatenate all ranks' matrices, whose lengths differ and are not known to others.",
    statement="Every rank of group (None means the default process group), of W ranks, calls "
    "solution(x, gather_dim, group) with its own matrix x. Ranks agree on dtype, on gather_dim, "
    "which is 0 or 1, and on the length of the other dimension; the length along gather_dim may "
    "be another one on every rank, and a rank knows only its own. Return the matrices of ranks 0 "
    "to W-1 concatenated in this order along gather_dim: a new contiguous tensor, the same on "
    "every rank. The argument must stay as it is. Lengths are positive; they and gather_dim may "
    "differ from call to call, the lengths of other ranks even where x keeps its shape.",
    outputs=("whole",),
    also=("Sequence Parallel", "Collective Primitive"),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=(
        "PKB gives every rank the same shape, so under `upstream` a kernel that takes this for "
        "granted passes.",
        "The lengths are needed on the host to allocate the result: the reference waits for them.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: each rank lacks another number of parts of its length, 0 to W+1, which on two ranks
    does not tell what the other lacks."""
    gather_dim = ctx.choose(0, (0, 1))
    missing = ctx.ragged([0] * ctx.world_size, range(ctx.world_size + 2))[ctx.rank]
    shape = [d.m, d.n]
    shape[gather_dim] -= missing * (shape[gather_dim] // (2 * ctx.world_size + 1))
    return {"x": ctx.randn(*shape), "gather_dim": gather_dim, "group": None}


def reference(
    x: torch.Tensor,
    gather_dim: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rows = x.movedim(gather_dim, 0)
    mine = torch.tensor([len(rows)], device=x.device)
    lengths = mine.new_empty(dist.get_world_size(group))
    dist.all_gather_into_tensor(lengths, mine, group=group)
    counts = lengths.tolist()
    most = max(counts)
    sent = rows.contiguous()
    if len(rows) < most:
        sent = rows.new_empty(most, *rows.shape[1:])
        sent[: len(rows)] = rows
    whole = sent.new_empty(len(counts) * most, *rows.shape[1:])
    dist.all_gather_into_tensor(whole, sent, group=group)
    if min(counts) < most:
        parts = zip(torch.split(whole, most), counts, strict=True)
        whole = torch.cat([part[:count] for part, count in parts])
    return whole.movedim(0, gather_dim).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of equal shards, which are timed, and of one length per rank."""
    shard = d.m * d.n * itemsize
    return Cost(
        wire_bytes=all_gather_bytes(shard + 8, world_size),
        flops=0,
        hbm_bytes=(1 + world_size) * shard,
    )
