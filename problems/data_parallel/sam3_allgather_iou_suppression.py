"""Suppression of overlapping masks, over objects that are spread unevenly over ranks."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.mask_chains import LINKS, chained_masks, logits
from problems.spec import EXACT_TOLERANCES, Cost, Dims, Problem, sizes

# Threshold, reverse, and whether chains have an object never seen and a tie, or a near miss.
_CASES = (
    (0.7071, False, "still"),
    (0.4472, True, "still"),
    (0.5, False, "chain"),
    (0.7071, True, "chain"),
    (0.4472, False, "missed"),
    (0.5, True, "missed"),
)

problem = Problem(
    number=81,
    title="All-gathered mask IoU suppression",
    source="facebookresearch/sam3",
    domain="Vision models",
    summary="Gather all masks, and blank out those that overlap an object seen more lately.",
    statement="Rank r holds num_obj_per_gpu[r] objects of a video segmenter: mask logits "
    "low_res_masks_local [n_r, H, Wd] and scores obj_scores_local [n_r]. Return three tensors, "
    "the same on every rank of the group (None means the default process group): the masks of "
    "all n objects in rank order, [n, H, Wd] in float32; all scores, [n] in float32; and the "
    "flags of suppressed objects, [n] bool. A mask is where its logit is > 0. The IoU of two "
    "objects is their common area over max(their joint area, 1). Two different objects i and j "
    "clash when their IoU >= iou_threshold; then i is suppressed if last_occluded[j] > -1 and "
    "last_occluded[i] > last_occluded[j], or < with reverse. last_occluded is [n] int64, the "
    "same on every rank. Suppressed masks are filled with -10. Raise ValueError if a rank's "
    "masks do not number n_r. Counts (at least 1), threshold and reverse may vary by call.",
    outputs=("masks", "scores", "suppressed"),
    also=("Geometric / Spatial",),
    sizes=sizes(
        large=(1024, 80 << 10),  # 560 objects on 4 ranks, past the end of the published plot
        more={f"objects-{7 * c}": (1024, c << 10) for c in (2, 5, 9, 18, 37)},
    ),
    tolerances=EXACT_TOLERANCES,
    tolerance_reason="masks are moved or filled, and areas are integers: every bit must be right",
    known_issues=(
        "Under `upstream` no two masks reach the threshold: a plain all-gather passes.",
        "The output is float32 in every run dtype; shapes depend on the trial.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """Masks of m/4 x m/4 and n/1024 objects for PKB's one, its fixed shape at m = n = 1024."""
    return Dims(m=m, n=n, side=max(1, m // 4), crowd=max(1, n // 1024))


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: chains of three masks, each of which clashes with the next one, or fails to by a
    pixel. The second suppresses the third even where the first suppresses the second."""
    published = [(1 + (r + ctx.turn) % 3) * d.crowd for r in range(ctx.world_size)]
    counts = ctx.ragged(published, (d.crowd, 2 * d.crowd, 3 * d.crowd))
    mine, first, side = counts[ctx.rank], sum(counts[: ctx.rank]), torch.arange(d.side)
    stripe = (torch.arange(mine) + ctx.rank).view(-1, 1, 1)  # shifts by object and rank, mod 5
    stripes = 4.0 * ((side.view(-1, 1) + side + stripe) % 5 == 0)
    objects = torch.arange(sum(counts))
    threshold, reverse, kind = ctx.choose((0.7, False, "chain"), _CASES)
    shuffled = ctx.sample(objects, len(objects), shared=True)
    turned = (objects.to(ctx.device) + shuffled[0]) % len(objects)  # neighbours on one rank
    places = ctx.choose(shuffled, (shuffled, turned))
    chains = torch.zeros(-(-len(objects) // LINKS), dtype=torch.int64)
    which, second, third = (ctx.integers(chains, 0, 2, shared=True) for _ in range(3))
    missed = (torch.stack([which, 1 - which], dim=1) == 1) & (kind == "missed")
    seen = [chains.to(ctx.device), 1 + second, 2 + second + third]
    if kind == "still":
        seen = [seen[0] - 1, seen[1], seen[1]]
    frames = torch.stack(seen, dim=1).flatten()[places]
    masks = ctx.randn(mine, d.side, d.side)
    near = chained_masks(ctx, d.side, places[first : first + mine], threshold, missed)
    return {
        "low_res_masks_local": ctx.pick(
            masks + stripes.to(ctx.device, ctx.dtype) - 1, logits(ctx, near, masks)
        ),  # rounded after each step
        "obj_scores_local": ctx.varied(torch.linspace(-5, 5, mine), spread=5.0),
        "num_obj_per_gpu": counts,
        "last_occluded": ctx.pick((objects % 5 - 1).to(ctx.device), frames),
        "iou_threshold": threshold,
        "reverse": reverse,
        "group": None,
    }


def reference(
    low_res_masks_local: torch.Tensor,
    obj_scores_local: torch.Tensor,
    num_obj_per_gpu: list[int],
    last_occluded: torch.Tensor,
    iou_threshold: float = 0.7,
    reverse: bool = False,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    mine, most = num_obj_per_gpu[dist.get_rank(group)], max(num_obj_per_gpu)
    if len(low_res_masks_local) != mine:
        raise ValueError(f"{len(low_res_masks_local)} masks, but num_obj_per_gpu says {mine}")
    wide = torch.promote_types(low_res_masks_local.dtype, torch.float32)

    def gather(local: torch.Tensor) -> torch.Tensor:
        padded = local.new_zeros(most, *local.shape[1:], dtype=wide)
        padded[:mine] = local
        out = padded.new_empty(len(num_obj_per_gpu) * most, *local.shape[1:])
        dist.all_gather_into_tensor(out, padded, group=group)
        parts = zip(torch.split(out, most), num_obj_per_gpu, strict=True)
        return torch.cat([part[:count] for part, count in parts])

    masks, scores = gather(low_res_masks_local), gather(obj_scores_local)
    flat = (masks > 0).flatten(1).to(wide)
    common, area = flat @ flat.T, flat.sum(dim=1)
    joint = area.view(-1, 1) + area - common
    clash = (common / joint.clamp(min=1) >= iou_threshold).fill_diagonal_(False)
    mine_at = last_occluded.view(-1, 1)
    loses = mine_at < last_occluded if reverse else mine_at > last_occluded
    suppressed = (clash & loses & (last_occluded > -1)).any(dim=1)
    return masks.masked_fill(suppressed.view(-1, 1, 1), -10.0), scores, suppressed


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of rank 0, which holds the fewest. Of a mask that is suppressed, as two thirds may be, signs
    are enough; overlaps need computing once."""
    one, all_objects = d.side**2 + 1, d.crowd * sum(1 + r % 3 for r in range(world_size))
    return Cost(
        wire_bytes=(all_objects - d.crowd) * one * (itemsize / 3 + 2 / 3 / 8),
        flops=all_objects**2 * one / world_size,
        hbm_bytes=(d.crowd * itemsize + 4 * all_objects) * one,
    )
