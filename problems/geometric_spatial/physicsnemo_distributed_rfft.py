"""Orthonormal 2-D FFT of real fields: sharded by columns before, by rows of the spectrum after."""

import math

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=59,
    title="Distributed 2-D real FFT",
    source="NVIDIA/physicsnemo",
    domain="Scientific computing",
    summary="Transform the complete axis, swap shards by all-to-all, and transform the other axis.",
    statement="x, [B, H, Wd/W] float32 and contiguous, holds this rank's columns r*Wd/W to "
    "(r+1)*Wd/W-1 of B real fields [B, H, Wd] that are sharded over the W ranks of the group in "
    "rank order (None means the default process group). dim = (a, b) names the axis that is "
    "complete on the rank and the sharded one: 1 and 2, or the same counted from the end. s = (H, "
    "Wd) are their whole lengths; an entry may be None and then says nothing. Return rows r*H/W "
    "to (r+1)*H/W-1 of torch.fft.rfft2(fields, dim=(a, b), norm=norm): a contiguous complex64 "
    "tensor [B, H/W, Wd//2+1]. norm is ortho, backward or forward. W divides H and Wd. Transforms "
    "are taken in float32 or better. All parameters and B, H and Wd may differ from call to call.",
    outputs=("spectrum",),
    also=("Tensor Parallel",),
    sizes=sizes(tiny=(128, 64), large=(2048, 2048)),
    tolerances=tolerances(
        float32=1.5e-3,
        bfloat16=1.5e-3,
        float16=1.5e-3,
        rms={"float32": 0.002, "bfloat16": 0.002, "float16": 0.002},
    ),
    tolerance_reason="float32 in every run dtype: transforms in another order are off by up to "
    "4e-6; where the mean is four deviations from 0, cuFFT's of lengths with large prime factors "
    "by 1.9e-4, and its rfft2 of 2048 x 2048 by 7e-4 in row H/2, where the mean cancels; inputs "
    "cut to bfloat16's mantissa are 9 limits off; "
    "the rms of honest answers is 4.4e-4 at most, over wires of int16 0.0063 or more",
    known_issues=(
        "Inputs are float32 in every run dtype.",
        "PKB compares the real parts only: its check drops the imaginary ones.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    height, width = (-(-max(16, x) // world_size) * world_size for x in (m, n))
    return Dims(m=m, n=n, batch=max(1, m // 64), height=height, width=width)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    ctx.reseed_upstream(0)
    fields = ctx.randn(d.batch, d.height, d.width, shared=True, dtype=torch.float32)
    mine, s = d.width // ctx.world_size, (d.height, d.width)
    return {
        "x": fields[..., ctx.rank * mine : (ctx.rank + 1) * mine].contiguous(),
        "s": ctx.choose(s, (s, (None, None))),
        "dim": ctx.choose((1, 2), ((1, 2), (-2, -1))),
        "norm": ctx.choose("ortho", ("ortho", "backward", "forward")),
        "group": None,
    }


def reference(
    x: torch.Tensor,
    s: tuple[int | None, int | None],
    dim: tuple[int, int],
    norm: str = "ortho",
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world, (whole, sharded) = dist.get_world_size(group), dim
    partial = torch.fft.fft(x, n=s[0], dim=whole, norm=norm)
    sent = torch.view_as_real(torch.stack(partial.chunk(world, dim=whole)))
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    rows = torch.cat(torch.view_as_complex(received).unbind(), dim=sharded)
    spectrum: torch.Tensor = torch.fft.fft(rows, n=s[1], dim=sharded, norm=norm)
    return spectrum.narrow(sharded, 0, spectrum.shape[sharded] // 2 + 1).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Transforms that use the symmetry of real fields. Ranks of mirrored rows may share what they
    receive, but each must receive as much as it returns. Values of 4 bytes in every run dtype."""
    local = d.batch * d.height * d.width / world_size
    half = d.batch * (d.height / world_size) * (d.width // 2 + 1)
    return Cost(
        wire_bytes=4 * local,
        flops=2.5 * local * math.log2(d.height * d.width),
        hbm_bytes=4 * local + 8 * half,
    )
