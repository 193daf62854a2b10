"""3-D convolution with sharded input channels; partial results are summed over ranks."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=76,
    title="Input-channel-parallel 3-D convolution with all-reduce",
    source="hpcaitech/Open-Sora",
    domain="Vision models",
    summary="Convolve this rank's input channels, sum over ranks, and add the bias once.",
    statement="Input channels are sharded over the W ranks of the group (None means the default "
    "process group). input is [B, Cl, T, H, Wd], this rank's channels; weight is [Cout, "
    "Cl/groups, kt, kh, kw], this rank's filters; bias is [Cout], the same on every rank, or "
    "None. Return the sum over ranks of conv3d(input, weight) (cross-correlation, as in torch, "
    "with the given stride, zero padding, dilation and groups, each grouping the rank's own "
    "channels), plus bias per output channel: a new contiguous tensor of the inputs' dtype, the "
    "same values on every rank. Partial results may round to the dtype before and while they are "
    "summed; a rank's products are summed in float32 or better. stride, padding and dilation are "
    "integers or triples. Shapes and parameters are the same on all ranks and may differ from "
    "call to call.",
    outputs=("out",),
    also=("Geometric / Spatial",),
    sizes=sizes(tiny=(64, 128), large=(1024, 2048)),
    tolerances=tolerances(
        float32=1e-4, bfloat16=3e-2, float16=4e-3, rms={"float32": 0.03, "bfloat16": 0.077}
    ),
    tolerance_reason="a partial result, every sum of two, and the bias may round to the run dtype "
    "(0.4 of the limit on 4 ranks), and float32 sums over 10^4 products differ by 1e-5 with their "
    "order; inputs cut to the next smaller format are 4 limits off; "
    "the rms of honest answers in bfloat16 is 0.071 at most, over int8 wires 0.084 or more",
    known_issues=(
        "Upstream outputs reach hundreds: in bfloat16 a kernel that sums in float32 misses PKB's "
        "absolute tolerance on about a tenth of the elements.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/2 channels and an output of n/64+1 frames of n/16 x n/16, which is PKB's fixed shape at
    m = n = 1024."""
    shard = 2 * -(-m // (4 * world_size))
    side = max(4, n // 16)
    return Dims(m=m, n=n, shard=shard, channels=shard * world_size, frames=n // 64 + 1, side=side)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    plain, others = (1, 0, 1, 1), (((1, 2, 2), (0, 1, 1), 1, 1), (1, 1, (1, 2, 2), 2))
    stride, padding, dilation, groups = ctx.choose(plain, (plain, *others))
    batch, has_bias = ctx.choose_untimed(1, (1, 2)), ctx.choose(True, (True, False))
    volume = ctx.randn(batch, d.shard, d.frames + 2, d.side + 2, d.side + 2)
    weight = ctx.randn(d.channels, d.shard // groups, 3, 3, 3)
    spread = 0.3 * ctx.spec.scale**2  # of what is convolved
    bias = torch.linspace(-0.1, 0.1, d.channels, dtype=ctx.dtype, device=ctx.device)
    return {
        "input": volume,
        "weight": ctx.pick(weight, weight * (27 * d.channels // groups) ** -0.5),
        "bias": ctx.varied(bias, spread=spread, shared=True) if has_bias else None,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "group": None,
    }


def reference(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: int | tuple[int, int, int],
    padding: int | tuple[int, int, int],
    dilation: int | tuple[int, int, int],
    groups: int = 1,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    out = torch.nn.functional.conv3d(
        input, weight, None, stride, padding, dilation, groups
    ).contiguous()
    dist.all_reduce(out, group=group)
    return out if bias is None else out.add_(bias.view(1, -1, 1, 1, 1))


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """A rank receives as much as the result, or the others' inputs and filters."""
    output, filters = d.channels * d.frames * d.side**2, 27 * d.channels * d.shard
    given = d.shard * (d.frames + 2) * (d.side + 2) ** 2 + filters
    return Cost(
        wire_bytes=min(output, all_gather_bytes(given, world_size)) * itemsize,
        flops=2 * output * 27 * d.shard,
        hbm_bytes=(given + d.channels + output) * itemsize,
    )
