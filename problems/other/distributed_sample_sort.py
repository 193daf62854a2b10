"""Sample sort: a vector spread over ranks is sorted, and spread evenly again."""

import torch
import torch.distributed as dist

from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.shard_lengths import shard_lengths
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=85,
    title="Distributed sample sort with exact rebalancing",
    source="nv-legate/cupynumeric",
    domain="Scientific computing",
    summary="Sort a vector spread over ranks; rank r ends with the r-th equal slice of it.",
    statement="The W ranks of group (None means the default process group) hold a vector's parts: "
    "local_shard is this rank's, [n_r], of a floating dtype that all ranks share. n_r differs from "
    "rank to rank, is known to its own rank only and may be 0. Sort the whole vector in ascending "
    "order, repeated values kept, and return this rank's slice of it as a new contiguous tensor of "
    "that dtype: with T elements in all, T//W elements on each rank and one more on the first T "
    "mod W ranks, rank 0's slice being the smallest values. Many values may be equal, on one rank "
    "and between ranks; all are finite. local_shard must stay as it is. n_r may differ from call "
    "to call.",
    outputs=("sorted_slice",),
    also=("Collective Primitive",),
    n_step=None,
    sizes=sizes(tiny=(512, 1024), large=(1 << 28, 1024)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="values are moved only: every one must be the very one",
    known_issues=("Upstream ranks hold disjoint, descending ranges: whole shards change places.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's M/W elements per rank, continued above its cap of 4096."""
    return Dims(m=m, n=n, items=max(4 * world_size, m // world_size))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: half of all values are repeated, or, in some untimed calls, all of them."""
    published = [0 if ctx.turn % 4 == 3 and r % 2 else d.items for r in range(ctx.world_size)]
    items = shard_lengths(ctx, published, d.items)[ctx.rank]
    integers = ctx.randint(-50, 50, items).to(ctx.dtype) - ctx.rank * max(1, items)
    crowd = torch.cat([ctx.filled(0.0, 4, shared=True), ctx.filled(0.0, 4)])
    lot = ctx.integers(torch.zeros(items, dtype=torch.int64), 0, ctx.choose_untimed(16, (16, 8)))
    values = torch.where(lot < 8, crowd[lot.clamp(max=7)], ctx.filled(0.0, items))
    return {"local_shard": ctx.pick(integers, values), "group": None}


def _exchange(
    values: torch.Tensor, counts: torch.Tensor, group: dist.ProcessGroup | None
) -> torch.Tensor:
    """Send counts[r] values to rank r; returns those received, in order of ranks."""
    expected = torch.empty_like(counts)
    dist.all_to_all_single(expected, counts, group=group)
    there, here = torch.stack([counts, expected]).tolist()
    received = values.new_empty(sum(here))
    dist.all_to_all_single(received, values, here, there, group=group)
    return received


def _gathered(own: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    everybodys = own.new_empty(dist.get_world_size(group) * len(own))
    dist.all_gather_into_tensor(everybodys, own, group=group)
    return everybodys


def reference(local_shard: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    values, steps = local_shard.sort().values, torch.arange(1, world + 1, device=local_shard.device)
    lengths = _gathered(steps.new_tensor([len(values)]), group)
    places = lengths.view(-1, 1) * steps // (world + 1)  # of the samples in their shards
    samples = values[places[rank]] if len(values) else values.new_full((world,), float("inf"))
    gathered = _gathered(samples, group)
    # A stable sort orders equal samples by rank and place; so are equal values dealt to buckets.
    order = gathered.argsort(stable=True)
    filled = (lengths > 0).sum() * world
    chosen = order[steps[:-1] * filled // world]
    before = torch.searchsorted(values, gathered[chosen])
    through = torch.searchsorted(values, gathered[chosen], right=True)
    source, place = chosen // world, places.flatten()[chosen]
    cuts = torch.where(source > rank, through, torch.where(source < rank, before, place))
    counts = torch.nn.functional.pad(cuts, (1, 1)).diff()
    counts[-1] += len(values)
    bucket = _exchange(values, counts, group).sort().values
    lengths = _gathered(steps.new_tensor([len(bucket)]), group)
    total, first = lengths.sum(), lengths[:rank].sum()
    shares = total // world + (steps <= total % world)
    ends = (shares.cumsum(0) - first).clamp(0, len(bucket))
    return _exchange(bucket, ends.diff(prepend=ends.new_zeros(1)), group)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of elements that lie on every rank with equal chance. Every second one may be a repeated one;
    in order the others take a bit at least, or one for every second of all possible values."""
    shard, bits = d.items * itemsize, min(d.items, 1 << 8 * itemsize) / 2
    wire = all_to_all_bytes(bits / 8, world_size)
    return Cost(wire_bytes=wire, flops=0, hbm_bytes=2 * shard, exchanges=2)
