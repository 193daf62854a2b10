"""Jagged id lists of all features go to the ranks that own the features' embedding tables."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

problem = Problem(
    number=70,
    title="KeyedJaggedTensor all-to-all",
    source="meta-pytorch/torchrec",
    domain="Recommender training",
    summary="Send jagged id lists of each group of features to its owner, and reorder arrivals.",
    statement="This rank has a batch of batch_size samples, each with a list (bag) of ids for each "
    "of F features. lengths, int64 [F*batch_size], holds the bags' lengths, zero allowed, feature "
    "by feature, and values, int64 [sum(lengths)], their ids in the same order. key_splits, a list "
    "of W ints from 1 up, the same on every rank of pg (None means the default process group, of W "
    "ranks), cuts the F = sum(key_splits) features into consecutive groups: rank d owns group d. "
    "Send each bag to the owner of its feature. Return a dict of new contiguous int64 tensors: "
    "'lengths' and 'values' of all bags of the own features, for each own feature in turn, for "
    "each source rank, for each of its samples in order; 'stride', 0-dimensional, the sum of all "
    "ranks' batch sizes; 'stride_per_rank', [W], the batch sizes. Source ranks come in the order x "
    "+ (W//stagger)*y, y = 0 to stagger-1 for each x = 0 to W//stagger-1 in turn; stagger divides "
    "W, and 1 gives the order of ranks. batch_size, lengths and the number of ids differ from rank "
    "to rank and are not known elsewhere; they, key_splits and stagger may differ from call to "
    "call. Ids may be any int64 numbers. weights and stride_per_key are None in every call, or "
    "left out.",
    outputs=("lengths", "values", "stride", "stride_per_rank"),
    also=("Tensor Parallel",),
    n_step=None,
    sizes=sizes(large=(524288, 1024)),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="integers: every one must be right",
    ranked_from=4,
    ranked_from_reason="of two ranks every stagger gives the same order: it may be ignored",
    known_issues=(
        "PKB compares ids as floats with 1 % tolerance, and wrong ids of the same size pass.",
        "PKB never passes weights, stride_per_key or stagger, which `upstream` leaves out, nor "
        "batches of unequal size.",
        "Under `upstream` every timed call has lists of its own lengths, too.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """PKB's batch of M/W samples, at least 512: continued below that floor and above its cap."""
    return Dims(m=m, n=n, batch=max(1, min(m // 2, 512), m // world_size))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    owners = range(ctx.world_size)
    splits = [1 + owner % 3 for owner in owners]
    key_splits = ctx.choose(splits, (splits, [3 - owner % 3 for owner in owners]))
    batch = d.batch - ctx.ragged([0] * ctx.world_size, range(5))[ctx.rank]
    published = ctx.randint(5, 21, sum(key_splits), batch).flatten()
    if ctx.spec.timed:
        ctx.reseed_upstream(ctx.rank)
    mean = ctx.ragged([13] * ctx.world_size, (13, 14, 15))[ctx.rank]
    uneven = ctx.integers(torch.zeros(len(published) // 2, dtype=torch.int64), -mean, mean + 1)
    even = uneven.new_zeros(len(published) % 2)
    stagger = ctx.choose(1, (1, 2))
    lengths = ctx.pick(published, mean + torch.cat([uneven, even, -uneven.flip(0)]))
    return {
        "lengths": lengths,
        "values": ctx.randint(0, ctx.pick(1000000, 1 << 40), int(lengths.sum())),
        "key_splits": key_splits,
        "batch_size": batch,
        "pg": None,
        **ctx.pick({}, {"weights": None, "stride_per_key": None, "stagger": stagger}),
    }


def _ranges(start: torch.Tensor, length: torch.Tensor, total: int) -> torch.Tensor:
    """start[i], start[i]+1, ... for length[i] numbers, one i after the other."""
    shift = (start - length.cumsum(0) + length).repeat_interleave(length, output_size=total)
    return shift + torch.arange(total, device=shift.device)


def reference(
    lengths: torch.Tensor,
    values: torch.Tensor,
    key_splits: list[int],
    batch_size: int,
    pg: dist.ProcessGroup | None = None,
    weights: torch.Tensor | None = None,
    stride_per_key: list[int] | None = None,
    stagger: int = 1,
) -> dict[str, torch.Tensor]:
    if weights is not None or stride_per_key is not None:
        raise NotImplementedError("neither weights nor batches per key are exchanged")
    world, device = dist.get_world_size(pg), lengths.device
    bags = torch.tensor([batch_size * keys for keys in key_splits], device=device)
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))[bags.cumsum(0)]
    ids = ends.diff(prepend=ends.new_zeros(1))
    sent = torch.stack([bags, ids, torch.full_like(bags, batch_size)], dim=1)
    arriving = torch.empty_like(sent)
    dist.all_to_all_single(arriving, sent, group=pg)
    (bags_out, ids_out, _), (bags_in, ids_in, _) = torch.stack([sent, arriving]).mT.tolist()
    came = lengths.new_empty(sum(bags_in))
    dist.all_to_all_single(came, lengths, bags_in, bags_out, group=pg)
    came_ids = values.new_empty(sum(ids_in))
    dist.all_to_all_single(came_ids, values[: sum(ids_out)], ids_in, ids_out, group=pg)
    from_each, _, batches = arriving.unbind(1)
    ranks = torch.arange(world, device=device)
    source = ranks.repeat_interleave(from_each, output_size=len(came))
    within = _ranges(torch.zeros_like(from_each), from_each, len(came))
    place = ranks.view(stagger, -1).T.flatten().argsort()  # of each source in the order asked for
    order = (within // batches[source] * world + place[source]).argsort(stable=True)
    reordered, start = came[order], came.cumsum(0) - came
    return {
        "lengths": reordered,
        "values": came_ids[_ranges(start[order], reordered, len(came_ids))],
        "stride": batches.sum(),
        "stride_per_rank": batches.clone(memory_format=torch.contiguous_format),
    }


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of the rank with the most features. PKB's bags hold 5 to 20 ids, a number of 4 bits, and ids
    below a million, numbers of 20; hardened ones have more of both."""
    most = min(3, world_size) * d.batch
    every = sum(1 + owner % 3 for owner in range(world_size)) * d.batch
    return Cost(
        wire_bytes=(4 + 20 * 12.5) / 8 * (world_size - 1) * most,
        flops=0,
        hbm_bytes=8 * 13.5 * (every + world_size * most),
    )
