"""Decode overlapping tiles of a latent video on different ranks, blend them and share the video."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=78,
    title="Tile-parallel VAE decode with overlap blending",
    source="SandAI-org/MAGI-1",
    domain="Vision models",
    summary="Deal tiles of a latent video to ranks, upsample, blend overlaps and assemble.",
    statement="z, [B, C, T, H, Wd] bfloat16 with C >= 3, is cut into overlapping tiles. The axes "
    "T, H and Wd have tile sizes tile_latent_min_length (first_frame_as_image, which would add 1, "
    "is always False), tile_latent_min_height and tile_latent_min_width, overlaps "
    "temporal_tile_overlap_factor for T and spatial_tile_overlap_factor for H and Wd, and factors "
    "temporal_upsample for T and spatial_upsample*sr_ratio for H and Wd. Along each axis tiles "
    "start at the multiples of stride = int(size*(1-overlap)) below the axis's length and end "
    "after size latents or at the border; raise ValueError if a stride is not positive. Number "
    "them in the order (T, H, Wd), Wd fastest, and sort them by their number of latents, largest "
    "first, ties by number: the p-th belongs to rank p mod W of the W ranks of the group (None "
    "means the default process group). It is decoded from its owner's z, which differs from the "
    "other ranks': trilinear interpolation of channels 0 to 2 of the tile alone, by the factors, "
    "in float32 or better, with half-pixel centres (align_corners False), rounded to bfloat16. "
    "Then blend each tile, along T, H and Wd in this order, unless it is the first along the axis: "
    "with e = min(length of the decoded tile before it, its own length, int(size*factor*overlap)), "
    "own[i] = before[its length - e + i] * (1 - i/e) + own[i] * (i/e) for 0 <= i < e, where "
    "`before` is that tile before any blending. Cut the tile at size*factor - "
    "int(size*factor*overlap) along each axis and join all tiles. Return the whole video, a "
    "contiguous bfloat16 tensor [B, 3, T', H', Wd'], the same on every rank. A blend's products "
    "and sum may round to bfloat16. Shapes and parameters are the same on all ranks and may differ "
    "from call to call.",
    outputs=("video",),
    also=("Data Parallel",),
    sizes=sizes(tiny=(64, 64), large=(2048, 2048)),
    tolerances=tolerances(
        float32=3e-2,
        bfloat16=3e-2,
        float16=3e-2,
        rms={"float32": 0.056, "bfloat16": 0.056, "float16": 0.056},
    ),
    tolerance_reason="blends round to bfloat16 up to nine times, 0.55 of the limit; float32 "
    "blends take 0.1 of it, and inputs cut to 3 mantissa bits are 3 limits off; "
    "the rms of honest answers in bfloat16 is 0.045 at most, over int8 wires 0.069 or more",
    known_issues=(
        "Upsampling stands in for a decoder: here recomputing a tile is cheaper than sending it.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """Latents of 90 x 90 and tiles of 32 x 32, times m/1024 and n/1024: PKB's fixed shape at m =
    n = 1024."""
    height, width = (-(-90 * x // 1024) for x in (m, n))
    rows, columns = (4 * max(1, x // 128) for x in (m, n))
    return Dims(m=m, n=n, frames=6, height=height, width=width, rows=rows, columns=columns)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    plain, others = (3, 0.25, 0.0, 8, 1), ((4, 0.5, 0.25, 4, 1), (3, 0.25, 0.0, 4, 2))
    length, overlap, overlap_in_time, upsample, ratio = ctx.choose(plain, (plain, *others))
    rows, columns = ctx.choose_untimed((0, 0), ((0, 0), (1, 3), (3, 2)))
    batch, channels = ctx.choose_untimed((1, 16), ((1, 16), (2, 5)))
    return {
        "z": ctx.randn(batch, channels, d.frames, d.height, d.width, dtype=torch.bfloat16),
        "tile_latent_min_length": length,
        "tile_latent_min_height": d.rows + rows,
        "tile_latent_min_width": d.columns + columns,
        "spatial_tile_overlap_factor": overlap,
        "temporal_tile_overlap_factor": overlap_in_time,
        "spatial_upsample": upsample,
        "temporal_upsample": ctx.choose_untimed(4, (4, 2)),
        "sr_ratio": ratio,
        "first_frame_as_image": False,
        "group": None,
    }


def _decoded(tile: torch.Tensor, factor: list[int]) -> torch.Tensor:
    wide = tile[:, :3].to(torch.promote_types(tile.dtype, torch.float32))
    scale = [*map(float, factor)]
    return torch.nn.functional.interpolate(wide, None, scale, "trilinear").to(tile.dtype)


def _shared(
    own: list[torch.Tensor], size: list[list[int]], z: torch.Tensor, group: dist.ProcessGroup | None
) -> list[torch.Tensor]:
    """Tiles [B, 3, *size] of all these sizes; rank r gives the r-th, r+W-th and so on."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    shapes = [torch.Size([len(z), 3, *lengths]) for lengths in size]
    loads = [[shape.numel() for shape in shapes[r::world]] for r in range(world)]
    longest = max(map(sum, loads))
    padding = z.new_zeros(longest - sum(loads[rank]))
    gathered = z.new_empty(world * longest)
    packed = torch.cat([*(tile.flatten() for tile in own), padding])
    dist.all_gather_into_tensor(gathered, packed, group=group)
    rows = zip(gathered.view(world, -1), loads, strict=True)
    parts = [torch.split_with_sizes(row[: sum(load)], load) for row, load in rows]
    return [parts[p % world][p // world].view(shape) for p, shape in enumerate(shapes)]


def _blended(
    decoded: dict[tuple[int, ...], torch.Tensor],
    place: tuple[int, ...],
    stride: list[int],
    overlaps: list[int],
) -> torch.Tensor:
    own = decoded[place]
    wide = torch.promote_types(own.dtype, torch.float32)
    for axis, overlap in enumerate(overlaps):
        before = decoded.get((*place[:axis], place[axis] - stride[axis], *place[axis + 1 :]))
        if before is None or overlap == 0:
            continue
        dim, length = axis + 2, own.shape[axis + 2]
        e = min(before.shape[dim], length, overlap)
        steps = torch.arange(e, dtype=torch.float64, device=own.device)
        ramp = (steps / e).view(-1, *[1] * (2 - axis))
        out = before.narrow(dim, before.shape[dim] - e, e) * (1 - ramp).to(wide)
        into = own.narrow(dim, 0, e) * ramp.to(wide)
        rest = own.narrow(dim, e, length - e)
        own = torch.cat([out.to(own.dtype) + into.to(own.dtype), rest], dim=dim)
    return own


def reference(
    z: torch.Tensor,
    tile_latent_min_length: int,
    tile_latent_min_height: int,
    tile_latent_min_width: int,
    spatial_tile_overlap_factor: float,
    temporal_tile_overlap_factor: float,
    spatial_upsample: int,
    temporal_upsample: int,
    sr_ratio: int = 1,
    first_frame_as_image: bool = False,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    size = [tile_latent_min_length + first_frame_as_image]
    size += [tile_latent_min_height, tile_latent_min_width]
    factor = [temporal_upsample, *[spatial_upsample * sr_ratio] * 2]
    share = [temporal_tile_overlap_factor, *[spatial_tile_overlap_factor] * 2]
    stride = [int(n * (1 - o)) for n, o in zip(size, share, strict=True)]
    if min(stride) <= 0:
        raise ValueError("tiles overlap so much that they do not advance")
    overlap = [int(n * f * o) for n, f, o in zip(size, factor, share, strict=True)]
    ts, hs, ws = (range(0, n, step) for n, step in zip(z.shape[2:], stride, strict=True))
    grid: list[tuple[int, ...]] = [(t, h, w) for t in ts for h in hs for w in ws]
    a, b, c = size
    cut = [z[:, :, t : t + a, h : h + b, w : w + c] for t, h, w in grid]
    tiles = dict(zip(grid, cut, strict=True))
    order = sorted(tiles, key=lambda place: -tiles[place].numel())
    mine = order[dist.get_rank(group) :: dist.get_world_size(group)]
    lengths = [[n * f for n, f in zip(tiles[p].shape[2:], factor, strict=True)] for p in order]
    own = [_decoded(tiles[p], factor) for p in mine]
    decoded = dict(zip(order, _shared(own, lengths, z, group), strict=True))
    keep = [n * f - o for n, f, o in zip(size, factor, overlap, strict=True)]
    blended = [_blended(decoded, p, stride, overlap) for p in mine]
    own = [tile[:, :, : keep[0], : keep[1], : keep[2]] for tile in blended]
    lengths = [list(map(min, length, keep)) for length in lengths]
    kept = dict(zip(order, _shared(own, lengths, z, group), strict=True))
    strips = {(t, h): torch.cat([kept[t, h, w] for w in ws], dim=4) for t in ts for h in hs}
    return torch.cat([torch.cat([strips[t, h] for h in hs], dim=3) for t in ts], dim=2)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Only latents of others' tiles need to travel. Published overlaps and factors, bfloat16."""
    height, width = (
        sum(min(tile, length - start) for start in range(0, length, 3 * tile // 4))
        for length, tile in ((d.height, d.rows), (d.width, d.columns))
    )
    latents, video = 3 * d.frames * height * width, 3 * d.frames * d.height * d.width * 4 * 8 * 8
    return Cost(
        wire_bytes=2 * latents * (world_size - 1) / world_size,
        flops=16 * latents * 4 * 8 * 8 / world_size,
        hbm_bytes=2 * (3 * d.frames * d.height * d.width + video),
    )
