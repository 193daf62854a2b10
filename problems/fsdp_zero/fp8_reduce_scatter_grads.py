"""Reduce-scatter of gradients that every rank has rounded to FP8 with delayed scaling."""

import torch
import torch.distributed as dist

from problems.collectives import reduce_scatter_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=52,
    title="FP8 gradient reduce-scatter with delayed scaling",
    source="NVIDIA/TransformerEngine",
    domain="LLM training",
    summary="Round gradients to FP8 with a scale from past maxima, then average and scatter them.",
    statement="flat_grads is this rank's flat gradient, [W*P] for the W ranks of the default "
    "process group; amax_history, [H] in bfloat16, holds its past absolute maxima, the oldest "
    "first. Each rank has its own of both. The new history drops the oldest entry and appends "
    "max|flat_grads|, rounded to bfloat16. The scale is s = max(new history, 1e-12) / 448 in "
    "float32, and every gradient x becomes q * s, where q is x / s, taken in float32, rounded "
    "to the nearest float8_e4m3fn, ties to even. Return a tuple of two new contiguous tensors: "
    "this rank's part of the mean over ranks of q * s, elements r*P to (r+1)*P-1 on rank r, [P] "
    "in the dtype of flat_grads; and the new history, [H] in bfloat16. q * s, sums and the mean "
    "may round to the gradients' dtype; a quotient within a few float32 ulps of the middle "
    "between two codes may become either. The arguments must stay as they are. P is any positive "
    "integer; H is 16.",
    outputs=("mean_grads", "new_history"),
    also=("Data Parallel",),
    sizes=sizes(tiny=(512, 1024), large=(65536, 32768)),
    tolerances=tolerances(float32=1e-5, bfloat16=2.5e-2, float16=3e-3, rms={"bfloat16": 0.097}),
    tolerance_reason="values, sums and mean may round to the run dtype (0.012 in bfloat16, 8 "
    "ranks); quotients within 2^-20 of a tie may go either way; gradients that are not rounded to "
    "FP8 are off by 0.1, as are those with a wrong scale; "
    "the rms of honest answers in bfloat16 is 0.089 at most, over int8 wires 0.107 or more",
    settles_upstream=True,
    known_issues=(
        "Upstream's history is 1e-8 throughout: a kernel that ignores it passes.",
        "Upstream divides by the number 448, on a GPU a product with 1/448: at ties PKB's check "
        "tells how a kernel divides; here either code passes.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """P = m*n/256, which is PKB's fixed 4096 at m = n = 1024."""
    return Dims(m=m, n=n, shard=-(-m * n // 256), history=16)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    grads = ctx.randn(ctx.world_size * d.shard)
    untouched = torch.full((d.history,), 1e-8, dtype=torch.bfloat16, device=ctx.device)
    past = ctx.varied(torch.zeros(d.history), spread=2.5).abs().to(torch.bfloat16)
    past[0] *= 8  # the oldest, which must not count
    return {"flat_grads": grads, "amax_history": ctx.pick(untouched, past)}


def _scale(flat: torch.Tensor, amax_history: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The scale in the history's precision or float32, and the new history."""
    latest = flat.abs().max().to(torch.bfloat16).to(amax_history.dtype)
    history = torch.cat([amax_history[1:], latest.view(1)])
    wide = torch.promote_types(history.dtype, torch.float32)
    largest = history.max().clamp(min=1e-12).to(wide)
    return largest / largest.new_full((), 448), history  # a tensor, for a true division on CUDA


def _own_mean(grads: torch.Tensor) -> torch.Tensor:
    mean = grads.new_empty(grads.numel() // dist.get_world_size())
    dist.reduce_scatter_tensor(mean, grads)
    return mean / dist.get_world_size()


def reference(
    flat_grads: torch.Tensor, amax_history: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    scale, history = _scale(flat_grads, amax_history)
    scale = scale.to(torch.float32)
    codes = (flat_grads.to(torch.float32) / scale).to(torch.float8_e4m3fn)
    return _own_mean((codes.to(torch.float32) * scale).to(flat_grads.dtype)), history


def keys(flat_grads: torch.Tensor, amax_history: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The least and the largest mean, which differ where some rank's quotient is at a tie."""
    scale, _ = _scale(flat_grads, amax_history)
    either = torch.stack([flat_grads * (1 - 2**-20), flat_grads * (1 + 2**-20)]) / scale
    codes = either.to(torch.float32).to(torch.float8_e4m3fn).double()
    low, high = (codes * scale).sort(dim=0).values
    return _own_mean(low), _own_mean(high)


def settle(
    got: tuple[torch.Tensor, ...], truth: tuple[torch.Tensor, ...], keys: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...]:
    """Only what lies outside the bounds is an error."""
    mean = got[0].double()
    return (truth[0] + mean - mean.clamp(*keys), *got[1:])


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    grads = world_size * d.shard
    return Cost(
        wire_bytes=reduce_scatter_bytes(grads + 4 * world_size, world_size),
        flops=5 * grads + (world_size - 1) * d.shard,
        hbm_bytes=(grads + d.shard) * itemsize + 4 * d.history,
    )
