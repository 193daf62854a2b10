"""Multi-hop neighbour sampling on a graph whose nodes belong to different ranks."""

import math

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=64,
    title="Distributed multi-hop neighbour sampling",
    source="pyg-team/pytorch_geometric",
    domain="GNN training",
    summary="Sample neighbours hop by hop, each node on the rank that owns it.",
    statement="Every rank calls with its own distinct seed_nodes, [s] int64 global ids. "
    "node_to_rank, [num_nodes], names each node's owner; node v's neighbours are "
    "local_adj_col[local_adj_row_ptr[v]:local_adj_row_ptr[v+1]] on its owner, and on other "
    "ranks these entries may hold anything; local_adj_row_ptr, [num_nodes+1], and node_to_rank "
    "are the same on every rank. All are int64. The frontier starts as the seeds. In each hop "
    "of fan-out k from fanouts, every frontier node, in order, contributes its first min(k, "
    "degree) neighbours, or all if k < 0; the next frontier is the sampled nodes not met "
    "before, in order of first appearance, and joins the node list, which starts with the "
    "seeds. Return four int64 tensors: the node list; for every sampled edge, in order of "
    "hops, the place of the neighbour and the place of the frontier node in the node list; and "
    "the edge's index into local_adj_col. group None means the default process group; replace "
    "is ignored. All lengths depend on the data.",
    outputs=("nodes", "rows", "cols", "edges"),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="integers: every one must be right",
    sizes=sizes(large=(100000, 16384)),
    latency_bound_reason="at most 2048 seeds a rank: a hop moves a few hundred kilobytes",
    known_issues=(
        "PKB replicates the graph, so under `upstream` a local computation is right; hardened "
        "entries of other owners' nodes are decoys.",
        "Upstream inputs are the same in every trial.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's clamps, continued below m = n = 1024: 10 m nodes and n/2 seeds."""
    nodes = max(min(10 * m, 10000), min(m, 100000))
    seeds = max(min(n // 2, 512), min(n // world_size, 2048))
    unit = 2 * world_size
    return Dims(m=m, n=n, nodes=-(-nodes // unit) * unit, seeds=seeds, degree=16)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    node, place = torch.arange(d.nodes), torch.arange(d.degree)
    seeds = (torch.arange(d.seeds) + ctx.rank * d.seeds) % d.nodes
    ring = (node.view(-1, 1) + 1 + place).flatten() % d.nodes
    uneven = ctx.integers(torch.zeros(d.nodes // 2, dtype=torch.int64), -6, 7, shared=True)
    degrees = d.degree + torch.stack([uneven, -uneven], dim=1).flatten()
    owner = ctx.integers(node % ctx.world_size, 0, ctx.world_size, shared=True)
    true = ctx.integers(ring, 0, d.nodes, shared=True)
    decoy = ctx.integers(ring, 0, d.nodes)
    return {
        "seed_nodes": ctx.sample(seeds, d.nodes),
        "fanouts": ctx.choose([10, 5], ([10, 5], [-1, 3], [2, 4, 3])),
        "local_adj_row_ptr": torch.nn.functional.pad(degrees.cumsum(0), (1, 0)),
        "local_adj_col": torch.where(owner.repeat_interleave(degrees) == ctx.rank, true, decoy),
        "node_to_rank": owner,
        "group": None,
        "replace": False,
    }


def _exchange(
    rows: torch.Tensor, counts: torch.Tensor, group: dist.ProcessGroup | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Send counts[r] rows to rank r; returns the rows received and how many came from each rank."""
    expected = torch.empty_like(counts)
    dist.all_to_all_single(expected, counts, group=group)
    received = rows.new_empty(int(expected.sum()), *rows.shape[1:])
    dist.all_to_all_single(received, rows, expected.tolist(), counts.tolist(), group=group)
    return received, expected


def _ranges(start: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """start[i], start[i]+1, ... for length[i] numbers, one i after the other."""
    shift = (start - length.cumsum(0) + length).repeat_interleave(length)
    return shift + torch.arange(len(shift), device=shift.device)


def _in_order_of_appearance(ids: torch.Tensor) -> torch.Tensor:
    unique, which = torch.unique(ids, return_inverse=True)
    place = torch.arange(len(ids), device=ids.device)
    first = torch.full_like(unique, len(ids)).scatter_reduce_(0, which, place, "amin")
    return ids[first.sort().values]


def reference(
    seed_nodes: torch.Tensor,
    fanouts: list[int],
    local_adj_row_ptr: torch.Tensor,
    local_adj_col: torch.Tensor,
    node_to_rank: torch.Tensor,
    group: dist.ProcessGroup | None = None,
    replace: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    ranks = torch.arange(dist.get_world_size(group), device=seed_nodes.device)
    nodes = frontier = seed_nodes
    hops = []
    for fanout in fanouts:
        owner = node_to_rank[frontier]
        order = owner.argsort(stable=True)
        asked, askers = _exchange(frontier[order], owner.bincount(minlength=len(ranks)), group)
        start = local_adj_row_ptr[asked]
        degree = local_adj_row_ptr[asked + 1] - start
        taken = degree if fanout < 0 else degree.clamp(max=fanout)
        edges = _ranges(start, taken)
        sampled = torch.stack([local_adj_col[edges], edges], dim=1)
        per_asker = torch.zeros_like(askers).index_add_(0, ranks.repeat_interleave(askers), taken)
        replies, _ = _exchange(sampled, per_asker, group)
        counts, _ = _exchange(taken, askers, group)
        back = order.argsort()  # replies are grouped by owner
        replies = replies[_ranges((counts.cumsum(0) - counts)[back], counts[back])]
        hops.append(torch.stack([*replies.T, frontier.repeat_interleave(counts[back])]))
        met = _in_order_of_appearance(torch.cat([nodes, replies[:, 0]]))
        nodes, frontier = met, met[len(nodes) :]
    place = torch.empty_like(node_to_rank)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    neighbour, edge, target = torch.cat(hops, dim=1)
    return nodes, place[neighbour], place[target], edge


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of the first hop only: how many nodes the second one meets depends on the graph. An id takes
    no more bits than the number of nodes; places of edges follow from the row pointers."""
    edges = 10 * d.seeds
    return Cost(
        wire_bytes=all_to_all_bytes(math.log2(d.nodes) / 8 * edges, world_size),
        flops=0,
        hbm_bytes=8 * (3 * d.seeds + 4 * edges),
        exchanges=2,
    )
