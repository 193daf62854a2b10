"""Ulysses' building block: an all-to-all that cuts along one dimension and joins along another."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem

problem = Problem(
    number=33,
    title="Ulysses all-to-all (scatter one dimension, gather another)",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Cut a matrix into W pieces along one dimension, swap them, join along another.",
    statement="Every rank of group (None means the default process group), of W ranks, calls "
    "solution(x, scatter_dim, gather_dim, group) with its own matrix x of shape [M, N]; all ranks "
    "agree on shape, dtype and both dimensions, each of which is 0 or 1. Cut x along scatter_dim "
    "into W equal pieces, whose number divides that length, and give piece d to the group's rank "
    "d. Return the pieces received from ranks 0 to W-1, this rank's own among them, concatenated "
    "in this order along gather_dim: with (0, 1), out[i, j*N + c] on rank r is x[r*M/W + i, c] "
    "of rank j, [M/W, W*N]. The result is a new contiguous tensor; the argument must stay as it "
    "is. M and N may be any multiples of W, and the dimensions, which may be equal, may differ "
    "from call to call.",
    outputs=("joined",),
    also=("Sequence Parallel", "Collective Primitive"),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="data is only moved: every bit must arrive",
    known_issues=("PKB only ever scatters dimension 0 and gathers dimension 1.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """Rounded up to multiples of W, which PKB's sizes are."""
    rows, columns = (-(-length // world_size) * world_size for length in (m, n))
    return Dims(m=rows, n=columns)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    scatter_dim, gather_dim = ctx.choose((0, 1), ((0, 1), (1, 0), (0, 0)))
    return {
        "x": ctx.randn(d.m, d.n),
        "scatter_dim": scatter_dim,
        "gather_dim": gather_dim,
        "group": None,
    }


def reference(
    x: torch.Tensor,
    scatter_dim: int,
    gather_dim: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    pieces = torch.unflatten(x, scatter_dim, (world, -1)).movedim(scatter_dim, 0).contiguous()
    received = torch.empty_like(pieces)
    dist.all_to_all_single(received, pieces, group=group)
    return received.movedim(0, gather_dim).flatten(gather_dim, gather_dim + 1).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    full = d.m * d.n * itemsize
    return Cost(
        wire_bytes=all_to_all_bytes(full, world_size),
        flops=0,
        hbm_bytes=2 * full,
    )
