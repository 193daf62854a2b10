"""Embedding lookup in a table whose rows are sharded over ranks: ids go out, vectors come back."""

import math

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=10,
    title="Row-sharded embedding lookup",
    source="pytorch/torchrec",
    domain="Other",
    summary="Fetch any rows of a row-sharded table from their owners, grouped by owner.",
    statement="An embedding table of W*R rows is sharded over the W ranks of the default "
    "process group: local_shard, [R, D], holds rows r*R to (r+1)*R-1 on rank r. indices, [M] "
    "int64, are the global row ids that this rank wants, each in 0..W*R-1, in any order, with "
    "repeats, different on every rank. Return a new contiguous tensor [M, D] of the shard's "
    "dtype with the rows wanted, grouped by owner and NOT in the order of indices: first all "
    "rows that rank 0 owns, then those of rank 1, and so on, and within one owner in the order "
    "in which indices asks for them. Values are exact copies. All ranks agree on M, R, D and "
    "the dtype, and M = R. Any owner may be asked for anything from no row to all M. M and D "
    "may be any positive integers. The arguments must stay as they are.",
    outputs=("rows",),
    also=("Vocab Parallel",),
    sizes=sizes(large=(32768, 1024)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="values are only moved: every bit must be right",
    known_issues=("The published order of rows is by owner, not by request; we keep it.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, table=world_size * m)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened ranks ask a favourite other owner for none up to all of their rows."""
    local_shard = ctx.randn(d.m, d.n)
    indices = ctx.randint(0, d.table, d.m)
    zeros = torch.zeros(d.m, dtype=torch.int64)
    ahead = ctx.integers(zeros[:1], 1, ctx.world_size)
    favoured = (ctx.rank + ahead) % ctx.world_size * d.m + ctx.sample(torch.arange(d.m), d.m)
    share = ctx.integers(zeros[:1], 0, 4)
    skewed = torch.where(ctx.integers(zeros, 0, 3) < share, favoured, indices)
    return {"indices": ctx.pick(indices, skewed), "local_shard": local_shard}


def reference(indices: torch.Tensor, local_shard: torch.Tensor) -> torch.Tensor:
    rank, world, rows = dist.get_rank(), dist.get_world_size(), len(local_shard)
    owner = indices // rows
    counts = (owner.unsqueeze(1) == torch.arange(world, device=owner.device)).sum(dim=0)
    expected = torch.empty_like(counts)
    dist.all_to_all_single(expected, counts)
    wanted, served = torch.stack([counts, expected]).tolist()
    asked = indices.new_empty(sum(served))
    by_owner = indices[owner.argsort(stable=True)]
    dist.all_to_all_single(asked, by_owner, served, wanted)
    found = local_shard[(asked - rank * rows).clamp(0, rows - 1)]
    received = local_shard.new_empty(len(indices), *local_shard.shape[1:])
    dist.all_to_all_single(received, found, wanted, served)
    return received


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Distinct rows of uniform indices are fetched once, by reads that need no request, and are
    read from memory once for all ranks."""
    distinct = (world_size - 1) * d.m * -math.expm1(-1 / world_size)
    return Cost(
        wire_bytes=distinct * d.n * itemsize,
        flops=0,
        hbm_bytes=8 * d.m + (1 - math.expm1(-1)) * d.m * d.n * itemsize,
    )
