"""Hyena's gated long convolution over a sequence that is sharded in zigzag order."""

import math

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=72,
    title="Hyena operator forward under context parallelism",
    source="Zymrael/savanna",
    domain="LLM training",
    summary="Re-shard from sequence to channels, gate, convolve by FFT, gate, and re-shard back.",
    statement="x1_seq, x2_seq and v_seq are [B, Ch, ls]: all channels of this rank's part of a "
    "sequence of length L = W*ls over the W ranks of the group (None means the default process "
    "group). With with_zigzag_splitting the sequence is cut into 2W chunks and rank q holds "
    "chunks q and 2W-1-q, in this order; otherwise rank q holds the q-th of W parts. For every "
    "channel c take z = x2 * v along the whole sequence in natural order, y = the first L "
    "samples of the linear convolution of z with the filter h[c // group_dim] (h is "
    "[num_groups, taps], num_groups * group_dim = Ch, cut at 2L taps) plus conv_bias[c] * z, "
    "in float32 or better, and out = x1 * y. Products before and after the convolution may "
    "round to the inputs' dtype. Return this rank's part of out, in the order it came, as a "
    "contiguous tensor [B, ls, Ch] of that dtype. W divides num_groups and 2 divides ls. h and "
    "conv_bias are the same on every rank; group_dim and with_zigzag_splitting may differ from "
    "call to call.",
    outputs=("out",),
    also=("Sequence Parallel",),
    sizes=sizes(
        large=(1024, 8192),  # 16384 a rank: the end of the published plot over lengths
        more={"ls-1024": (1024, 512), "ls-4096": (1024, 2048), "ls-8192": (1024, 4096)},
    ),
    tolerances=tolerances(float32=1e-4, bfloat16=5e-2, float16=7e-3),
    tolerance_reason="gates and the convolution's result may round to the run dtype, which over "
    "millions of outputs comes to 0.024 and 0.0033 in 16 bits, and an FFT's error is relative to "
    "the largest output, not to each",
    known_issues=(
        "Upstream filters grow to 1024 over 4096 taps: some outputs cancel, and only kernels "
        "that round like a float32 FFT pass PKB's absolute tolerance.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """Ch = m, ls = 2n and 4n taps, which is PKB's fixed shape at m = n = 1024."""
    unit = 2 * world_size
    return Dims(m=m, n=n, channels=-(-m // unit) * unit, ls=2 * n, taps=4 * n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """One of the hardened factors spreads by 1 at most: three by 8 overflow float16."""
    group_dim = ctx.choose(1, (1, 2))
    groups = d.channels // group_dim
    stairs = torch.arange(groups * d.taps, dtype=torch.bfloat16).view(groups, d.taps) / d.taps
    slope = torch.arange(d.channels, dtype=torch.bfloat16) / d.channels
    return {
        "x1_seq": ctx.randn(1, d.channels, d.ls),
        "x2_seq": ctx.randn(1, d.channels, d.ls) / max(1.0, ctx.spec.scale),
        "v_seq": ctx.randn(1, d.channels, d.ls),
        "h": ctx.varied(stairs, spread=d.taps**-0.5, shared=True),
        "conv_bias": ctx.varied(slope, shared=True),
        "num_groups": groups,
        "group_dim": group_dim,
        "group": None,
        "with_zigzag_splitting": ctx.choose(True, (True, False)),
    }


def _swap(x: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    received = torch.empty_like(x, memory_format=torch.contiguous_format)
    dist.all_to_all_single(received, x.contiguous(), group=group)
    return received


def reference(
    x1_seq: torch.Tensor,
    x2_seq: torch.Tensor,
    v_seq: torch.Tensor,
    h: torch.Tensor,
    conv_bias: torch.Tensor,
    num_groups: int,
    group_dim: int,
    group: dist.ProcessGroup | None = None,
    with_zigzag_splitting: bool = True,
) -> torch.Tensor:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    (batch, channels, ls), chunks = x1_seq.shape, 2 * world
    stored = torch.arange(chunks, device=h.device)  # the chunk at each place of the storage order
    if with_zigzag_splitting:
        stored = torch.stack([stored[:world], stored.flip(0)[:world]], dim=1).flatten()

    def to_channels(x: torch.Tensor) -> torch.Tensor:
        parts = _swap(x.view(batch, world, -1, ls).transpose(0, 1), group).permute(1, 2, 0, 3)
        natural = parts.reshape(batch, -1, chunks, ls // 2)[:, :, stored.argsort()]
        return natural.reshape(batch, channels // world, world * ls)

    x1, x2, v = to_channels(x1_seq), to_channels(x2_seq), to_channels(v_seq)
    first, last = rank * num_groups // world, (rank + 1) * num_groups // world
    wide = torch.promote_types(h.dtype, torch.float32)
    filters = h[first:last].repeat_interleave(group_dim, dim=0).to(wide)
    bias = conv_bias.view(world, -1, 1)[rank].to(wide)
    u, length = (x2 * v).to(wide), world * ls
    spectrum = torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(filters, n=2 * length)
    y = torch.fft.irfft(spectrum, n=2 * length)[..., :length] + u * bias
    out = (x1 * y.to(x1.dtype)).view(batch, -1, chunks, ls // 2)[:, :, stored]
    parts = _swap(out.reshape(batch, -1, world, ls).permute(2, 0, 1, 3), group)
    return parts.permute(1, 3, 0, 2).reshape(batch, ls, channels).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of the last rank: it learns of the W - 1 chunks before its own, or receives its result."""
    mine, length = d.channels / world_size, world_size * d.ls
    transform = 2.5 * 2 * length * math.log2(2 * length)
    return Cost(
        wire_bytes=min((world_size - 1) / 2, 1) * d.channels * d.ls * itemsize,
        flops=mine * (2 * transform + 11 * length),
        hbm_bytes=4 * d.channels * d.ls * itemsize,
    )
