"""Convolution of an image cut into horizontal bands, with boundary rows from the neighbours."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=87,
    title="Patch-parallel 2-D convolution with boundary-row exchange",
    source="mit-han-lab/distrifuser",
    domain="Inference engines",
    summary="Fetch the rows above and below this rank's band of an image, then convolve the band.",
    statement="x, [B, Cin, h, w], is this rank's band of an image, stacked from the bands of the "
    "W ranks of the group in rank order, top to bottom (None means the default process group). "
    "weight, [Cout, Cin, k, k], and bias, [Cout] or None, are this rank's own and differ between "
    "ranks. With padding > 0 put the last `padding` rows of the band above over x and the first "
    "`padding` rows of the band below under it, zeros where there is no such band, and `padding` "
    "columns of zeros on both sides; with padding 0 take x as it is. Return conv2d "
    "(cross-correlation, as in torch) of that with weight at this stride, no further padding, "
    "plus bias per channel: a contiguous tensor of x's dtype, [B, Cout, (h+2*padding-k)//stride + "
    "1, (w+2*padding-k)//stride + 1]. Products are summed in float32 or better, and their sum may "
    "round to the dtype before the bias is added. h >= padding; shapes, stride and padding are "
    "the same on all ranks and may differ from call to call.",
    outputs=("out",),
    topology="neighbours along the height",
    also=("Sequence Parallel",),
    sizes=sizes(tiny=(128, 32), large=(2048, 1024)),
    tolerances=tolerances(
        float32=1e-4, bfloat16=2e-2, float16=3e-3, rms={"float32": 0.03, "bfloat16": 0.065}
    ),
    tolerance_reason="the sum of products and its sum with the bias may each round to the run "
    "dtype: a sum of 4 to 8 by 0.016 in bfloat16 before a bias takes most of it away, seen once "
    "in 10^8 elements on GPUs; float32 sums over 10^4 products differ by 1e-5 with their order; "
    "inputs cut to the next smaller format are 6 limits off, in float32 80; "
    "the rms of honest answers in bfloat16 is 0.047 at most, over int8 wires 0.084 or more",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """An image of 2m/8 rows and m/8 columns with 5n/4 channels: at m = n = 1024 PKB's shape,
    which it fixes whatever m and steps through 320, 640 and 1280 channels with n."""
    width = -(-m // 8)
    height = max(3, width // max(1, world_size // 2))
    return Dims(m=m, n=n, channels=5 * n // 4, height=height, width=width)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    kernel, stride, padding = ctx.choose((3, 1, 1), ((3, 1, 1), (5, 1, 2), (3, 2, 1)))
    batch, made = ctx.choose_untimed((1, d.channels), ((1, d.channels), (2, d.channels // 2)))
    has_bias = ctx.choose(True, (True, False))
    x = ctx.randn(batch, d.channels, d.height, d.width)
    weight = ctx.randn(made, d.channels, kernel, kernel)
    return {
        "x": ctx.peaked(x * ctx.gains(d.width, share=1 / 16), 32.0),
        "weight": ctx.pick(weight, weight * (kernel * kernel * d.channels) ** -0.5),
        "bias": ctx.randn(made) if has_bias else None,
        "stride": stride,
        "padding": ctx.choose_untimed(padding, (*[padding] * 5, 0)),
        "group": None,
    }


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: int = 1,
    padding: int = 1,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    if padding == 0 or world == 1:
        return torch.nn.functional.conv2d(x, weight, bias, stride, padding)
    edges = torch.stack([x[:, :, :padding], x[:, :, -padding:]])
    gathered = edges.new_empty(world * edges.numel())
    dist.all_gather_into_tensor(gathered, edges.view(-1), group=group)
    bands = gathered.view(world, *edges.shape)
    outside = torch.zeros_like(edges[0])
    above = bands[rank - 1, 1] if rank > 0 else outside
    below = bands[rank + 1, 0] if rank < world - 1 else outside
    padded = torch.cat([above, x, below], dim=2)
    return torch.nn.functional.conv2d(padded, weight, bias, stride, (0, padding))


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    image, row = d.channels * d.height * d.width, d.channels * d.width
    weights = 9 * d.channels * d.channels + d.channels
    return Cost(
        wire_bytes=min(2, world_size - 1) * row * itemsize,
        flops=18 * d.channels * image + image,
        hbm_bytes=(2 * image + weights) * itemsize,
    )
