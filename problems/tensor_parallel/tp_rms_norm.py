"""RMSNorm over a hidden dimension that is sharded over ranks."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, tolerances

problem = Problem(
    number=18,
    title="Tensor-parallel RMSNorm",
    source="huggingface/transformers",
    domain="LLM training",
    summary="Normalise each token by the mean square over all ranks' slices of its hidden state.",
    statement="Hidden states of W*N features are sharded over the W ranks of the default "
    "process group: local_hidden_states, [T, N], holds this rank's features of all T tokens and "
    "local_weight, [N], its part of the gain, of the same dtype. For each token take v, the "
    "mean over the features of all ranks of the squared values, in float32 or better. Return a "
    "new contiguous tensor [T, N] of the inputs' dtype: local_weight * (local_hidden_states / "
    "sqrt(v + variance_epsilon)), where the part in parentheses is computed in float32 or "
    "better and may round to that dtype before the multiplication by the gain. All ranks agree "
    "on shapes, dtype and variance_epsilon, a positive Python float that may differ from call "
    "to call; T and N may be any positive integers. The arguments must stay as they are.",
    outputs=("normed",),
    tolerances=tolerances(float32=2e-5, bfloat16=1.2e-2, float16=2e-3, rms={"bfloat16": 0.15}),
    tolerance_reason="two roundings to the run dtype, relative to each element (bfloat16: "
    "0.0061 measured, float16: 0.0007); float32 rejects inputs rounded to tf32 (0.0006), 16 bits "
    "reject inputs in fp8 (0.069)",
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened tokens lean away from zero on each rank differently, so that no rank can tell the
    mean square of the others from its own; epsilon is a share of that. Few tokens are large."""
    features, gain = ctx.randn(d.m, d.n), ctx.randn(d.n)
    power = 2 * ctx.spec.scale**2 + 4 * ctx.spec.shift**2
    large = ctx.gains(d.m, 1, share=1 / 8, shared=True)
    return {
        "local_hidden_states": (features + ctx.filled(0.0, d.m, 1)) * large,
        "local_weight": gain,
        "variance_epsilon": ctx.choose(1e-5, (1e-4 * power, 0.5 * power)),
    }


def reference(
    local_hidden_states: torch.Tensor, local_weight: torch.Tensor, variance_epsilon: float
) -> torch.Tensor:
    dtype = local_hidden_states.dtype
    wide = local_hidden_states.to(torch.promote_types(dtype, torch.float32))
    squares = wide.square().sum(dim=-1, keepdim=True)
    dist.all_reduce(squares)
    mean = squares / (wide.shape[-1] * dist.get_world_size())
    return local_weight * (wide * torch.rsqrt(mean + variance_epsilon)).to(dtype)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    return Cost(
        wire_bytes=all_reduce_bytes(4 * d.m, world_size),
        flops=4 * d.m * d.n + 2 * d.m,
        hbm_bytes=(2 * d.m * d.n + d.n) * itemsize,
    )
