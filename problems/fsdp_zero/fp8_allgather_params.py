"""All-gather of parameter shards that every rank has rounded to FP8 with delayed scaling."""

import torch
import torch.distributed as dist

from problems.collectives import all_gather_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=53,
    title="FP8 parameter all-gather with delayed scaling",
    source="NVIDIA/TransformerEngine",
    domain="LLM training",
    summary="Round a parameter shard to FP8 with a scale from past maxima, then gather all shards.",
    statement="flat_param_shard is this rank's flat parameter shard, [P]; amax_history, [H] in "
    "bfloat16, holds its past absolute maxima, the oldest first. Each of the W ranks of the "
    "default process group has its own of both. The new history drops the oldest entry and "
    "appends max|flat_param_shard|, rounded to bfloat16. The scale is s = max(new history, "
    "1e-12) / 448 in float32, and every parameter x becomes q * s, where q is x / s, taken in "
    "float32, rounded to the nearest float8_e4m3fn, ties to even, and q * s is taken in float32 "
    "and rounded to the parameters' dtype. Return a tuple of two new contiguous tensors: q * s "
    "of all ranks, concatenated in rank order, [W*P] in that dtype, the same on every rank; and "
    "this rank's new history, [H] in bfloat16. A quotient within a few float32 ulps of the "
    "middle between two codes may become either. The arguments must stay as they are. P may be "
    "any positive integer; H is 16.",
    outputs=("params", "new_history"),
    sizes=sizes(tiny=(512, 1024), large=(65536, 32768)),
    tolerances=tolerances(float32=1e-6, bfloat16=6e-3, float16=1e-3),
    tolerance_reason="one rounding to the run dtype (0.0025 of both parts in bfloat16); quotients "
    "within 2^-20 of a tie may go either way; parameters that are not rounded to FP8 are off by "
    "0.04, those with a wrong scale by 0.07",
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
    params = ctx.randn(d.shard)
    untouched = torch.full((d.history,), 1e-8, dtype=torch.bfloat16, device=ctx.device)
    past = ctx.varied(torch.zeros(d.history), spread=2.5).abs().to(torch.bfloat16)
    past[0] *= 8  # the oldest, which must not count
    return {"flat_param_shard": params, "amax_history": ctx.pick(untouched, past)}


def _scale(flat: torch.Tensor, amax_history: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The scale in the history's precision or float32, and the new history."""
    latest = flat.abs().max().to(torch.bfloat16).to(amax_history.dtype)
    history = torch.cat([amax_history[1:], latest.view(1)])
    wide = torch.promote_types(history.dtype, torch.float32)
    largest = history.max().clamp(min=1e-12).to(wide)
    return largest / largest.new_full((), 448), history  # a tensor, for a true division on CUDA


def _gathered(shard: torch.Tensor) -> torch.Tensor:
    params = shard.repeat(dist.get_world_size())
    dist.all_gather_into_tensor(params, shard)
    return params


def reference(
    flat_param_shard: torch.Tensor, amax_history: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    scale, history = _scale(flat_param_shard, amax_history)
    scale = scale.to(torch.float32)
    codes = (flat_param_shard.to(torch.float32) / scale).to(torch.float8_e4m3fn)
    return _gathered((codes.to(torch.float32) * scale).to(flat_param_shard.dtype)), history


def keys(flat_param_shard: torch.Tensor, amax_history: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The least and the largest right value, which differ where a quotient is at a tie."""
    scale, _ = _scale(flat_param_shard, amax_history)
    nudged = [flat_param_shard * (1 - 2**-20), flat_param_shard * (1 + 2**-20)]
    either = torch.stack(nudged) / scale
    codes = either.to(torch.float32).to(torch.float8_e4m3fn).double()
    low, high = (codes * scale).sort(dim=0).values
    return _gathered(low), _gathered(high)


def settle(
    got: tuple[torch.Tensor, ...], truth: tuple[torch.Tensor, ...], keys: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...]:
    """Only what lies outside the bounds is an error."""
    params = got[0].double()
    return (truth[0] + params - params.clamp(*keys), *got[1:])


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    return Cost(
        wire_bytes=all_gather_bytes(d.shard + 4, world_size),
        flops=5 * d.shard,
        hbm_bytes=(1 + world_size) * d.shard * itemsize + 4 * d.history,
    )
