"""Backward of cooperative mini-batching's feature exchange: swap chunks, then add rows up."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=66,
    title="GNN feature exchange backward: all-to-all by relative rank, then scatter-add",
    source="dmlc/dgl",
    domain="GNN training",
    summary="Send gradient rows to the rank j places ahead and sum what arrives by row number.",
    statement="Cut grad_output, float32 [sum(counts_sent), H], into W chunks of counts_sent[0], "
    "..., counts_sent[W-1] rows, W being the size of group (None means the default process "
    "group). Chunk j of rank r goes to rank (r + j) mod W. Line up what arrives: for j = 0 to W-1 "
    "in turn, the counts_received[j] rows that come from rank (r + j) mod W, where they were "
    "chunk (W - j) mod W; chunk 0 is the rank's own. Return a new contiguous float32 tensor "
    "[seed_size, H] whose row s is the sum of all arrived rows i with seed_inverse_ids[i] = s, "
    "and zero where there is none. seed_inverse_ids is int64, [sum(counts_received)], with values "
    "from 0 to seed_size - 1, some of them many times. Sums are float32 or better, in any order. "
    "Both lists hold W Python ints, which agree between each pair of ranks and may be zero. All "
    "ranks agree on H. Counts, seed_size and H may differ from call to call, counts from rank to "
    "rank too.",
    outputs=("seed_gradients",),
    also=("Expert Parallel",),
    sizes=sizes(large=(131072, 1024)),
    tolerances=tolerances(float32=1e-5, bfloat16=1e-5, float16=1e-5),
    tolerance_reason="float32 in every run dtype: sums of hundreds of rows in another order differ "
    "by 1.4e-6, with rows cut to bfloat16's mantissa by 7e-3",
    known_issues=("Upstream chunks all have one length: a kernel that ignores the counts passes.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's clamps, continued below its floor of 64 rows and above m = n = 1024."""
    rows = max(min(64, m), m // world_size)
    hidden = max(8, min(n, max(128, n // 8)))
    return Dims(m=m, n=n, rows=rows, hidden=hidden, seeds=max(1, rows * world_size // 2))


def _chunks(ctx: RankContext, d: Dims) -> tuple[list[int], list[int]]:
    """How many rows this rank gets from, and sends to, the ranks 0, 1, ... places ahead."""
    world, place = ctx.world_size, torch.arange(ctx.world_size)
    around, along = ctx.choose((0, 0), ((1, 0), (0, 1), (0, 2)))
    apart, turned = (place - place.view(-1, 1)) % world, place.roll(ctx.choose(0, range(world)))
    rows = d.rows + around * (2 * apart - world) * d.rows // (2 * world)
    rows += along * (turned - turned.view(-1, 1)) * d.rows // (2 * (world - 1))
    ahead = (place + ctx.rank) % world
    return rows[ctx.rank, ahead].tolist(), rows[ahead, ctx.rank].tolist()


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    back, out = _chunks(ctx, d)
    grad_output = ctx.randn(sum(out), d.hidden, dtype=torch.float32)
    ids = ctx.randint(0, d.seeds, sum(back))
    skewed = d.seeds - 1 - ids * ids // d.seeds  # high rows are met often
    return {
        "grad_output": grad_output,
        "seed_inverse_ids": ctx.pick(ids, skewed),
        "seed_size": d.seeds,
        "counts_sent": out,
        "counts_received": back,
        "group": None,
    }


def _rotated(rows: torch.Tensor, counts: list[int], first: int) -> torch.Tensor:
    """The chunks of rows, chunk `first` in front."""
    cut = sum(counts[:first])
    return torch.cat([rows[cut:], rows[:cut]])


def reference(
    grad_output: torch.Tensor,
    seed_inverse_ids: torch.Tensor,
    seed_size: int,
    counts_sent: list[int],
    counts_received: list[int],
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    zero = -dist.get_rank(group) % dist.get_world_size(group)  # places from here ahead to rank 0
    there = counts_sent[zero:] + counts_sent[:zero]
    here = counts_received[zero:] + counts_received[:zero]
    received = grad_output.new_empty(sum(here), grad_output.shape[1])
    rows = _rotated(grad_output, counts_sent, zero)
    dist.all_to_all_single(received, rows, here, there, group=group)
    total = grad_output.new_zeros(seed_size, grad_output.shape[1])
    return total.index_add_(0, _rotated(seed_inverse_ids, counts_received, zero), received)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """A chunk's rows of one sum can be added up before they travel; so many are left at least."""
    rows, left = world_size * d.rows, d.rows * d.seeds / (d.rows + d.seeds)
    wire = 4 * (world_size - 1) * left * d.hidden
    hbm = 4 * (rows + d.seeds) * d.hidden + 8 * rows
    return Cost(wire_bytes=wire, flops=rows * d.hidden, hbm_bytes=hbm)
