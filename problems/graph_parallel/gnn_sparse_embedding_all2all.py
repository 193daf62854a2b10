"""Gradients of sparse embeddings travel to the ranks that own their nodes."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=67,
    title="Sparse embedding gradient push: route (id, row) pairs to their owners",
    source="dmlc/dgl",
    domain="GNN training",
    summary="Send each (node id, gradient row) pair to the rank that owns the node.",
    statement="This rank holds nnz pairs of a global node id, idx [nnz] int64 with values from 0 "
    "to num_nodes - 1, and a row, value [nnz, H]. The pair of id i belongs to rank i mod W, W "
    "being the size of group (None means the default process group). Send every pair to its "
    "owner. Return two new contiguous tensors: the ids that this rank owns, int64 [R], and their "
    "rows, [R, H] of value's dtype: first all from rank 0, then all from rank 1 and so on, each "
    "in the order in which its sender held them. Ids stay global and repeated ids stay apart. R "
    "depends on the data: it differs from rank to rank and call to call. Ids may come up often; "
    "owners get different numbers of pairs. All ranks agree on H and num_nodes; nnz, H and "
    "num_nodes may differ from call to call, nnz from rank to rank too.",
    outputs=("ids", "rows"),
    also=("Expert Parallel",),
    sizes=sizes(tiny=(512, 32), large=(524288, 1024)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="pairs are moved only: every id and value must be the very one",
    known_issues=(
        "PKB compares ids as floats with 1 % tolerance, and wrong ids of the same size pass.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's clamps, continued below its floor of 1024 pairs and above m = n = 1024."""
    nodes = -(-max(100000, m) // world_size) * world_size
    pairs = max(min(m, 1024), m // world_size)
    return Dims(m=m, n=n, nodes=nodes, pairs=pairs, hidden=max(8, min(n, max(128, n // 8))))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    pairs = d.pairs + ctx.ragged([0] * ctx.world_size, range(7))[ctx.rank]
    nodes = ctx.choose_untimed(d.nodes, (d.nodes, 3 * d.nodes))
    idx, value = ctx.randint(0, nodes, pairs), ctx.randn(pairs, d.hidden)
    hubs = ctx.integers(torch.zeros(8, dtype=torch.int64), 0, nodes, shared=True)
    lot = ctx.integers(torch.zeros(pairs, dtype=torch.int64), 0, 32)
    hidden = torch.where(lot < 8, hubs[lot.clamp(max=7)], idx)  # a quarter are hubs
    return {
        "idx": ctx.pick(idx, hidden),
        "value": value,
        "num_nodes": nodes,
        "group": None,
    }


def reference(
    idx: torch.Tensor,
    value: torch.Tensor,
    num_nodes: int,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    owner = idx % dist.get_world_size(group)
    order = owner.argsort(stable=True)
    counts = owner.bincount(minlength=dist.get_world_size(group))
    expected = torch.empty_like(counts)
    dist.all_to_all_single(expected, counts, group=group)
    there, here = torch.stack([counts, expected]).tolist()
    ids = idx.new_empty(sum(here))
    dist.all_to_all_single(ids, idx[order], here, there, group=group)
    rows = value.new_empty(sum(here), value.shape[1])
    dist.all_to_all_single(rows, value[order], here, there, group=group)
    return ids, rows


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of an even share of owners. Ids hardly count: they take few bits."""
    rows = d.pairs * d.hidden * itemsize
    return Cost(
        wire_bytes=all_to_all_bytes(rows, world_size),
        flops=0,
        hbm_bytes=2 * (8 * d.pairs + rows),
    )
