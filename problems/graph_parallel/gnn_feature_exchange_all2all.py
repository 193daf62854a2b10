"""Feature exchange of cooperative mini-batching: gather rows, then swap chunks with all ranks."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=65,
    title="GNN feature exchange: gather, then all-to-all by relative rank",
    source="dmlc/dgl",
    domain="GNN training",
    summary="Gather rows of a local feature table and send chunk j to the rank j places ahead.",
    statement="local_features is this rank's table, [S, H]; seed_inverse_ids, int64, names rows "
    "of it, any row any number of times. Take g = local_features[seed_inverse_ids] and cut g into "
    "W chunks of counts_received[0], ..., counts_received[W-1] rows, W being the size of group "
    "(None means the default process group). Chunk j of rank r goes to rank (r + j) mod W. Return "
    "a new contiguous tensor [sum(counts_sent), H] of the features' dtype: for j = 0 to W-1 in "
    "turn, the counts_sent[j] rows that come from rank (r + j) mod W, where they were chunk "
    "(W - j) mod W; chunk 0 is the rank's own. Both are lists of W Python ints, which agree "
    "between each pair of ranks and may hold zeros; note that, named for the backward direction, "
    "counts_received sizes what is sent and counts_sent what is returned. All ranks agree on H. "
    "Counts, S and H may differ from call to call, counts and S from rank to rank too.",
    outputs=("features",),
    also=("Expert Parallel",),
    sizes=sizes(large=(262144, 1024)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="rows are moved only: every value must be the very one",
    known_issues=(
        "Upstream chunks all have one length, so a kernel that ignores the counts passes; hardened "
        "ones differ from pair to pair.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's clamps, continued below its floor of 64 rows and above m = n = 1024."""
    rows = max(min(64, m), m // world_size)
    hidden = max(8, min(n, max(128, n // 8)))
    return Dims(m=m, n=n, rows=rows, hidden=hidden, seeds=max(1, rows * world_size * 3 // 4))


def _chunks(ctx: RankContext, d: Dims) -> tuple[list[int], list[int]]:
    """How many rows this rank sends to, and gets from, the ranks 0, 1, ... places ahead."""
    world, place = ctx.world_size, torch.arange(ctx.world_size)
    around, along = ctx.choose((0, 0), ((1, 0), (0, 1), (0, 2)))
    apart, turned = (place - place.view(-1, 1)) % world, place.roll(ctx.choose(0, range(world)))
    rows = d.rows + around * (2 * apart - world) * d.rows // (2 * world)
    rows += along * (turned - turned.view(-1, 1)) * d.rows // (2 * (world - 1))
    ahead = (place + ctx.rank) % world
    return rows[ctx.rank, ahead].tolist(), rows[ahead, ctx.rank].tolist()


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    out, back = _chunks(ctx, d)
    return {
        "local_features": ctx.randn(d.seeds, d.hidden),
        "seed_inverse_ids": ctx.randint(0, d.seeds, sum(out)),
        "counts_sent": back,
        "counts_received": out,
        "group": None,
    }


def _rotated(rows: torch.Tensor, counts: list[int], first: int) -> torch.Tensor:
    """The chunks of rows, chunk `first` in front."""
    cut = sum(counts[:first])
    return torch.cat([rows[cut:], rows[:cut]])


def reference(
    local_features: torch.Tensor,
    seed_inverse_ids: torch.Tensor,
    counts_sent: list[int],
    counts_received: list[int],
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    zero = -rank % world  # places from here ahead to rank 0
    there = counts_received[zero:] + counts_received[:zero]
    here = counts_sent[zero:] + counts_sent[:zero]
    rows = local_features[_rotated(seed_inverse_ids, counts_received, zero)]
    received = rows.new_empty(sum(here), rows.shape[1])
    dist.all_to_all_single(received, rows, here, there, group=group)
    return _rotated(received, here, rank)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """A row that a chunk names more than once travels once, and is read from memory once."""
    rows, absent = world_size * d.rows, 1 - 1 / d.seeds
    sent, read = d.seeds * (1 - absent**d.rows), d.seeds * (1 - absent**rows)
    return Cost(
        wire_bytes=(world_size - 1) * sent * d.hidden * itemsize,
        flops=0,
        hbm_bytes=(read + rows) * d.hidden * itemsize + 8 * rows,
    )
