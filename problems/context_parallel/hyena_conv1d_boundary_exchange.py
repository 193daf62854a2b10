"""Causal depthwise convolution over a zigzag-sharded sequence, with halos from the neighbours."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=71,
    title="Zigzag context-parallel causal convolution with halo exchange",
    source="Zymrael/savanna",
    domain="LLM training",
    summary="Fetch the last K-1 positions before each of two local chunks, then convolve causally.",
    statement="A sequence is cut into 2W chunks over the W >= 2 ranks of the group (None means "
    "the default process group); rank r holds chunks r and 2W-1-r, in this order along the last "
    "axis of x, [B, Ch, 2*chunk]. weight is [Ch, 1, K], a depthwise filter of this rank's own: "
    "filters differ between ranks. Return a contiguous tensor of x's shape and dtype: for each of "
    "the two chunks, y[b, c, t] = sum over j < K of weight[c, 0, j] * p[b, c, t+j], where p is "
    "the chunk preceded by the K-1 positions before it in the whole sequence (zeros before chunk "
    "0), taken from x of the rank that holds them, and weight is the filter of the rank that "
    "holds the chunk. Sums in float32 or better may round once to the dtype. chunk >= K-1; "
    "arguments must stay as they are. B, Ch, chunk and K may be any positive integers and may "
    "differ from call to call.",
    outputs=("out",),
    topology="each rank with the ranks before and after it",
    also=("Sequence Parallel",),
    sizes=sizes(large=(8192, 8192)),
    tolerances=tolerances(float32=1e-5, bfloat16=6e-3, float16=8e-4),
    tolerance_reason="one rounding to the run dtype takes half the limit; inputs cut to the next "
    "smaller format are 26 limits off, in float32 a thousand",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """Ch = m and chunks of n, which is PKB's fixed shape at m = n = 1024."""
    return Dims(m=m, n=n, batch=1, channels=m, chunk=n, taps=7)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    taps = ctx.choose(d.taps, (d.taps, 4))
    return {
        "x": ctx.randn(d.batch, d.channels, 2 * d.chunk),
        "weight": ctx.randn(d.channels, 1, taps),
        "group": None,
    }


def reference(
    x: torch.Tensor, weight: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    rank, last, halo = dist.get_rank(group), len(ranks) - 1, weight.shape[-1] - 1
    first, second = x.chunk(2, dim=-1)
    tail = first[..., first.shape[-1] - halo :].contiguous()
    second_tail = second[..., second.shape[-1] - halo :].contiguous()
    before_first, before_second = torch.zeros_like(tail), tail
    operations = []
    if rank > 0:
        before_first = torch.empty_like(tail)
        operations.append(dist.P2POp(dist.isend, second_tail, ranks[rank - 1], group))
        operations.append(dist.P2POp(dist.irecv, before_first, ranks[rank - 1], group))
    if rank < last:
        before_second = torch.empty_like(tail)
        operations.append(dist.P2POp(dist.isend, tail, ranks[rank + 1], group))
        operations.append(dist.P2POp(dist.irecv, before_second, ranks[rank + 1], group))
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    padded = torch.stack(
        [torch.cat([before_first, first], dim=-1), torch.cat([before_second, second], dim=-1)]
    )
    halves = torch.nn.functional.conv1d(padded.flatten(0, 1), weight, groups=x.shape[1])
    return torch.cat(halves.chunk(2), dim=-1)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    local = d.batch * d.channels * 2 * d.chunk
    halo = d.batch * d.channels * (d.taps - 1)
    return Cost(
        wire_bytes=min(2, world_size - 1) * halo * itemsize,
        flops=2 * d.taps * local,
        hbm_bytes=(2 * local + d.channels * d.taps) * itemsize,
    )
