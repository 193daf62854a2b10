"""Embeddings are fetched from the ranks that hold them, then projected."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, Requirements, sizes, tolerances

problem = Problem(
    number=68,
    title="Sharded embedding fetch followed by a projection",
    source="awslabs/graphstorm",
    domain="GNN training",
    summary="Fetch embeddings of queried nodes from their owners and multiply by a local matrix.",
    statement="An embedding table of num_total_nodes rows lies in equal ranges of rows on the W "
    "ranks of group (None means the default process group; W divides num_total_nodes): rank q "
    "holds rows q*n to (q+1)*n-1, n = num_total_nodes / W, as local_embedding_shard, [n, D]. "
    "input_node_ids, [Q] int64, are this rank's queries: any global rows, in any order, some "
    "of them often, and more from some owners than from others. Return this rank's [Q, Dout] "
    "product: row i is the embedding of input_node_ids[i] times this rank's own proj_matrix, [D, "
    "Dout], as a new contiguous tensor of the embeddings' dtype; products are summed in float32 "
    "or better. proj_matrix differs from rank to rank. All ranks agree on D and Dout; every "
    "size may differ from call to call, Q from rank to rank too.",
    outputs=("projected",),
    also=("Tensor Parallel",),
    requirements=Requirements(memory_gib=48),
    sizes=sizes(large=(1048576, 1024)),
    tolerances=tolerances(float32=2e-5, bfloat16=3.5e-2, float16=4.5e-3, rms={"bfloat16": 0.075}),
    tolerance_reason="a product summed in four parts, each rounded to the dtype, is off by 1.8e-2 "
    "in bfloat16 (rms 0.06); embeddings cut to 3 bits by 0.15, over fp8 wires by rms 0.33",
    known_issues=(
        "The published table has 111 million rows at any size, 14 GB per rank of four in 16 bits, "
        "and PKB's timing holds it twice. A judge holds it a dozen times, so ours has a 64th of "
        "them, still far more than caches hold; a call reads 20,000 rows of either.",
        "Upstream queries are a formula of rank and place, the same in every trial.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """At m = n = 1024 PKB's fixed sizes, but for its 111 million rows, of which this has a 64th."""
    nodes = max(4 * world_size, 111_000_000 // 64 * min(n, 1024) // 1024)
    queries = max(min(20 * m, 20000), m // world_size)
    return Dims(m=m, n=n, shard=-(-nodes // world_size), queries=queries, width=min(n, 256 - n % 2))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    queries = d.queries + ctx.pick(0, 5 * ctx.turn * (ctx.rank + 1) % 7)
    place, nodes = torch.arange(queries), ctx.world_size * d.shard
    even = (place + ctx.rank) % ctx.world_size * d.shard + (7 * place + ctx.rank) % d.shard
    ids = ctx.integers(even, 0, nodes)
    hubs = ctx.integers(torch.zeros(8, dtype=torch.int64), 0, nodes, shared=True)
    hubs[:4] = ((hubs[:4] // d.shard + 1) * d.shard).clamp(max=nodes) - 1  # ends of ranges
    lot = ctx.integers(torch.zeros(queries, dtype=torch.int64), 0, 32)
    table, published = ctx.randn(d.shard, d.width), ctx.randn(d.width, d.width)
    made = ctx.choose_untimed(d.width, (d.width, d.width // 2 + 1))
    matrix = ctx.varied(torch.zeros(d.width, made), spread=d.width**-0.5)
    faint = 2048 ** ctx.integers(torch.zeros(d.width, dtype=torch.int64), 0, 2, shared=True)
    return {
        "local_embedding_shard": table.div_(faint),
        "input_node_ids": ctx.pick(ids, torch.where(lot < 8, hubs[lot.clamp(max=7)], ids)),
        "proj_matrix": ctx.pick(published, matrix * faint.view(-1, 1)),
        "num_total_nodes": nodes,
        "group": None,
    }


def reference(
    local_embedding_shard: torch.Tensor,
    input_node_ids: torch.Tensor,
    proj_matrix: torch.Tensor,
    num_total_nodes: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    shard = -(-num_total_nodes // world)
    owner = (input_node_ids // shard).clamp(max=world - 1)
    order = owner.argsort(stable=True)
    counts = owner.bincount(minlength=world)
    expected = torch.empty_like(counts)
    dist.all_to_all_single(expected, counts, group=group)
    asked, asking = torch.stack([counts, expected]).tolist()
    rows = (input_node_ids - owner * shard)[order]
    wanted = rows.new_empty(sum(asking))
    dist.all_to_all_single(wanted, rows, asking, asked, group=group)
    served = local_embedding_shard[wanted]
    fetched = served.new_empty(len(order), served.shape[1])
    dist.all_to_all_single(fetched, served, asked, asking, group=group)
    return fetched[order.argsort()] @ proj_matrix


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Each row is pulled once, without asking. `hardened` asks for a few hubs in a quarter of the
    queries; owners have even shares of the others."""
    nodes = world_size * d.shard
    rows = nodes * (1 - (1 - 1 / nodes) ** (3 / 4 * d.queries))
    wire = all_to_all_bytes(rows * d.width * itemsize, world_size)
    hbm = (rows + d.queries + d.width) * d.width * itemsize + 8 * d.queries
    return Cost(wire_bytes=wire, flops=2 * rows * d.width**2, hbm_bytes=hbm)
