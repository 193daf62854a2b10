"""Convolution with sparse filters on a sphere that is sharded by latitude and longitude."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances
from problems.values import sparse

problem = Problem(
    number=62,
    title="Distributed discrete-continuous convolution on the sphere",
    source="NVIDIA/torch-harmonics",
    domain="Scientific computing",
    summary="Apply sparse filters at every longitude of a sphere sharded in both directions.",
    statement="x, [B, C, hl, wl] float32, is this rank's part of a latitude x longitude grid: the "
    "P ranks of polar_group hold bands of hl latitudes, the A ranks of azimuth_group hold nlon_in "
    "= A*wl longitudes of one band, both in the order of the group. A divides C, nlon_out and "
    "nlon_in, P divides the nlat output latitudes, and nlon_out divides nlon_in. psi is a "
    "coalesced sparse COO tensor [K, nlat, hl*nlon_in], float32, on the band's input latitudes; "
    "psi, weight and bias are each rank's own and differ between ranks. (1) Let rank a of "
    "azimuth_group apply its psi to the a-th C/A channels of its band: y[b, c, k, t, p] = sum over "
    "lat and lon of psi[k, t, lat*nlon_in + lon] * x[b, c, lat, (lon + p*nlon_in/nlon_out) mod "
    "nlon_in], for all t < nlat and p < nlon_out. (2) Sum y over polar_group. (3) Keep this rank's "
    "nlat/P latitudes t and nlon_out/A longitudes p, of all C channels. (4) weight is [O, "
    "C/groups, K], bias [O] or None: output channel o of group g = o // (O/groups) is the sum over "
    "the C/groups channels c of group g and k of y[c, k] * weight[o, c within g, k], plus "
    "bias[o]. Return it as a contiguous float32 tensor [B, O, nlat/P, nlon_out/A]. Sums are taken "
    "in float32 or better; psi's pattern, groups and nlon_out may differ from call to call.",
    outputs=("out",),
    mesh=("polar", "azimuth"),
    topology="rows and columns of a polar x azimuth mesh",
    also=("Tensor Parallel",),
    sizes=sizes(tiny=(128, 64), large=(2048, 1024)),
    tolerances=tolerances(float32=2e-5, bfloat16=2e-5, float16=2e-5),
    tolerance_reason="float32 in every run dtype: sums of a few dozen products in another order "
    "are off by 4e-7; inputs cut to bfloat16's mantissa are 600 limits off",
    ranked_from=4,
    ranked_from_reason="on two ranks there is one band of latitudes: no other is summed over",
    known_issues=(
        "Inputs are float32 in every run dtype.",
        "Upstream seeds filters, weights and biases per rank: the result is no convolution with "
        "one filter.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/8 latitudes, m/4 longitudes and a batch of n/32, which is PKB's fixed shape at m = n =
    1024."""
    azimuth = 2 if world_size % 2 == 0 else 1
    polar = world_size // azimuth
    band = 2 * -(-m // (16 * polar))
    return Dims(
        m=m,
        n=n,
        azimuth=azimuth,
        polar=polar,
        band=band,
        nlat=band * polar,
        nlon=2 * band * polar,
        batch=max(1, n // 32),
        channels=8,
        taps=3,
    )


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    groups, has_bias = ctx.choose(1, (1, 2)), ctx.choose(True, (True, False))
    made = ctx.choose_untimed(d.channels, (d.channels, 3 * d.channels // 2))
    rows, columns = d.taps * d.nlat, d.band * d.nlon
    x = ctx.randn(d.batch, d.channels, d.band, d.nlon // d.azimuth, dtype=torch.float32)
    weight = ctx.randn(made, d.channels // groups, d.taps, dtype=torch.float32)
    bias = ctx.randn(made, dtype=torch.float32)
    values = ctx.randn(rows, 4, dtype=torch.float32) * 0.05
    row = torch.arange(rows, device=ctx.device).view(-1, 1)
    entry = torch.arange(4, device=ctx.device)
    latitude, step = row % d.nlat, row // d.nlat + 1
    diagonal = latitude % d.band * d.nlon + (latitude + entry * step) % d.nlon
    quarter = columns // 4
    scattered = entry * quarter + ctx.integers(diagonal, 0, quarter)
    column, order = ctx.pick(diagonal, scattered).sort(dim=1)
    where = torch.stack([row // d.nlat, latitude]).expand(2, -1, 4)
    return {
        "x": x,
        "psi": sparse(
            torch.cat([where, column.unsqueeze(0)]).flatten(1),
            values.gather(1, order).flatten(),
            (d.taps, d.nlat, columns),
        ),
        "weight": weight,
        "groups": groups,
        "nlon_out": ctx.choose(d.nlon, (d.nlon, d.nlon // 2)),
        "nlon_in": d.nlon,
        "azimuth_group": ctx.group("azimuth"),
        "polar_group": ctx.group("polar"),
        "bias": bias if has_bias else None,
    }


def _swap(x: torch.Tensor, split: int, join: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """Part j of the axis `split` goes to rank j; what comes is joined along the axis `join`."""
    sent = torch.stack(x.chunk(dist.get_world_size(group), dim=split))
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return torch.cat(received.unbind(), dim=join)


def _filtered(x: torch.Tensor, psi: torch.Tensor, nlon_out: int, nlon_in: int) -> torch.Tensor:
    """[B, C, lat, nlon_in] to [B, C, K, nlat, nlon_out]."""
    (tap, latitude, column), (taps, nlat, _) = psi.indices(), psi.shape
    shift = torch.arange(nlon_out, device=x.device) * (nlon_in // nlon_out)
    row_start = (column // nlon_in * nlon_in).unsqueeze(1)
    taken = x.flatten(2)[..., row_start + (column.unsqueeze(1) + shift) % nlon_in]
    y = x.new_zeros(*x.shape[:2], taps * nlat, nlon_out)
    y.index_add_(2, tap * nlat + latitude, taken.mul_(psi.values().unsqueeze(1)))
    return y.view(*x.shape[:2], taps, nlat, nlon_out)


def reference(
    x: torch.Tensor,
    psi: torch.Tensor,
    weight: torch.Tensor,
    groups: int,
    nlon_out: int,
    nlon_in: int,
    azimuth_group: dist.ProcessGroup | None = None,
    polar_group: dist.ProcessGroup | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    y = _filtered(_swap(x, 1, 3, azimuth_group), psi, nlon_out, nlon_in)
    dist.all_reduce(y, group=polar_group)
    y = y.chunk(dist.get_world_size(polar_group), dim=3)[dist.get_rank(polar_group)]
    y = _swap(y, 4, 1, azimuth_group)
    y = y.view(len(y), groups, -1, *y.shape[2:])
    mixing = weight.view(groups, -1, *weight.shape[1:])
    out = torch.einsum("bgcktp,gock->bgotp", y, mixing).flatten(1, 2).contiguous()
    return out if bias is None else out.add_(bias.view(1, -1, 1, 1))


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Least traffic: either every rank reads all others' x, or azimuth groups swap channels, polar
    groups gather them, and outputs mixed for the partner are swapped back. Values of 4 bytes in
    every run dtype; filters have 4 entries per row."""
    channels, entries = d.channels // d.azimuth, 4 * d.taps * d.nlat
    local = d.batch * d.channels * d.band * d.nlon // d.azimuth
    weights = d.channels * (d.channels * d.taps + 1)
    staged = (d.azimuth - 1) / d.azimuth + d.polar - 1 + d.azimuth - 1
    return Cost(
        wire_bytes=4 * local * min(world_size - 1, staged),
        flops=2 * entries * d.batch * channels * d.nlon + (2 * d.channels * d.taps + 1) * local,
        hbm_bytes=8 * local + 28 * entries + 4 * weights,
    )
