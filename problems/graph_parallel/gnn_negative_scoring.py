"""The rank of every positive edge among its negatives, known to all ranks."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=69,
    title="Distributed ranking of positive edges against negatives",
    source="awslabs/graphstorm",
    domain="GNN training",
    summary="Rank each edge's score among its negatives' scores, and tell every rank all results.",
    statement="This rank holds the scores of P_r true edges, local_pos_scores [P_r], and of K "
    "corrupted ones for each, local_neg_scores [P_r, K]. P_r differs from rank to rank, is at "
    "least 1, and is known to its own rank only; all ranks agree on K and the dtype. An edge's "
    "rank is 1 + the number of its K negatives whose sigmoid, rounded to the scores' dtype, is "
    "greater than that of the positive: the positive wins ties. Return the ranks of all edges of "
    "all ranks of group (None means the default process group) as a new int64 tensor [P_0 + P_1 + "
    "...], rank 0's edges first, each rank's in their order; it is the same on every rank. "
    "Hardened scores lie so far apart, or are so equal, that neither the sigmoid's precision nor "
    "leaving it out decides a comparison. P_r and K may differ from call to call.",
    outputs=("ranking",),
    also=("Data Parallel",),
    sizes=sizes(tiny=(256, 128), large=(524288, 1024)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="integers: every one must be right; hardened scores that differ do so by "
    "1 % of their sigmoid in 16 bits, and by 11 ulps in float32",
    known_issues=(
        "Under `upstream`, bfloat16 sigmoids have many ties, which PKB leaves to an unstable sort; "
        "here the positive wins them.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's clamps, continued below its floors and above m = n = 1024."""
    return Dims(m=m, n=n, edges=max(1, m // world_size), negatives=min(n, 1000 - n % 2))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    edges = d.edges + ctx.ragged([r % 3 for r in range(ctx.world_size)], range(7))[ctx.rank]
    step, top = min(16 * torch.finfo(ctx.dtype).eps, 1 / 64), ctx.choose(0, (-1, -3, -2))
    level = torch.zeros(edges, d.negatives + 1, dtype=torch.int64)
    places, last = ctx.integers(level, 0, int(6 / step)), int(6 / step) - 1
    # There are more places than 8 bits hold. Every fourth score ties with its edge's positive one,
    # or lies so near that only an exact one tells the order.
    near = (places[:, :1] + ctx.integers(level, -4, 5)).clamp(0, last)
    places = torch.where(ctx.integers(level, 0, 4) == 0, near, places)
    grid = (top - step * places.double()).to(ctx.dtype)
    positive, negative = ctx.randn(edges), ctx.randn(edges, d.negatives)
    return {
        "local_pos_scores": ctx.pick(positive, grid[:, 0].contiguous()),
        "local_neg_scores": ctx.pick(negative, grid[:, 1:].contiguous()),
        "group": None,
    }


def reference(
    local_pos_scores: torch.Tensor,
    local_neg_scores: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    own = torch.cat([local_pos_scores.unsqueeze(1), local_neg_scores], dim=1)
    lengths = torch.zeros(world, dtype=torch.int64, device=own.device)
    lengths[rank] = len(own)
    dist.all_reduce(lengths, group=group)
    edges = lengths.tolist()
    scores = own.new_empty(sum(edges), own.shape[1])
    dist.all_to_all_single(scores, own.repeat(world, 1), edges, [len(own)] * world, group=group)
    scores = scores.sigmoid()
    return 1 + (scores[:, 1:] > scores[:, :1]).sum(dim=1)


def oracle(
    local_pos_scores: torch.Tensor,
    local_neg_scores: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """The reference in the run dtype, as rounding makes ties: the narrowest that holds all."""

    def holds(dtype: torch.dtype) -> bool:
        scores = (local_pos_scores, local_neg_scores)
        return all(torch.equal(s.to(dtype).to(s.dtype), s) for s in scores)

    formats = (torch.bfloat16, torch.float16, torch.float32)
    run = next((dtype for dtype in formats if holds(dtype)), local_pos_scores.dtype)
    return reference(local_pos_scores.to(run), local_neg_scores.to(run), group)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of ranking where the scores are, and sending results in two bytes."""
    scores = d.edges * (1 + d.negatives)
    return Cost(
        wire_bytes=2 * (world_size - 1) * d.edges,
        flops=2 * scores,
        hbm_bytes=scores * itemsize + 8 * world_size * d.edges,
    )
