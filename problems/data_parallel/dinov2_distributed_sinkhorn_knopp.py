"""Sinkhorn-Knopp: teacher logits of all ranks become soft assignments balanced over prototypes."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=80,
    title="Distributed Sinkhorn-Knopp centering",
    source="facebookresearch/dinov2",
    domain="Vision models",
    summary="Balance soft assignments of all ranks' samples over prototypes in a few iterations.",
    statement="teacher_output is float32, [B, K]: logits of this rank's B samples for K "
    "prototypes; n_masked_patches_tensor, int64 [1], holds B. Let q = exp(teacher_output / "
    "teacher_temp) for the samples of all ranks of group (None means the default process group). "
    "Then repeat n_iterations times (3 when left out): divide each prototype's entries by K times "
    "their sum over all samples of all ranks; then divide each sample's entries by their sum over "
    "the K prototypes. Return this rank's part of q as a new contiguous float32 tensor [B, K]; its "
    "rows sum to 1. Everything is float32 or better in every run dtype; logits stay so small that "
    "no exponential or sum overflows. Factors that cancel, such as dividing q by its total or by "
    "the number of samples first, may be left out or put in. teacher_output must stay as it is. "
    "All ranks agree on K, teacher_temp and n_iterations, which may differ from call to call, as "
    "may B, from rank to rank too.",
    outputs=("assignments",),
    sizes=sizes(large=(4096, 1024)),
    tolerances=tolerances(float32=3e-5, bfloat16=3e-5, float16=3e-5),
    tolerance_reason="sums in another order are off by 1e-6, exponents of up to 47 that are "
    "rounded once more by 6e-6; logits cut to bfloat16's mantissa by 2e-2",
    known_issues=(
        "Upstream answers are all near 1/16384: zeros pass PKB's absolute tolerance.",
        "Logits are float32 whatever the run dtype.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """B = m and K = 16 n, which are PKB's at m = n = 1024."""
    return Dims(m=m, n=n, batch=m, prototypes=16 * n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    batch = d.batch - ctx.ragged([0] * ctx.world_size, range(5))[ctx.rank]
    spread = ctx.pick(0.01, 0.03)
    samples = ctx.randn(batch, d.prototypes, dtype=torch.float32)
    popular = ctx.varied(torch.zeros(1, d.prototypes), spread=2.0)  # with this rank's samples
    return {
        "teacher_output": spread * (samples + popular.float()),
        "teacher_temp": ctx.choose(0.07, (0.07, 0.1, 0.05)),
        "n_masked_patches_tensor": torch.full((1,), batch, device=ctx.device),
        "n_iterations": ctx.choose(3, (3, 1, 2)),
        "group": None,
    }


def reference(
    teacher_output: torch.Tensor,
    teacher_temp: float,
    n_masked_patches_tensor: torch.Tensor,
    n_iterations: int = 3,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    q = torch.div(teacher_output, teacher_temp).exp_()
    samples = n_masked_patches_tensor.to(q.dtype)
    dist.all_reduce(samples, group=group)
    total = q.sum()
    dist.all_reduce(total, group=group)
    q /= total
    for _ in range(n_iterations):
        per_prototype = q.sum(dim=0)
        dist.all_reduce(per_prototype, group=group)
        q /= per_prototype * q.shape[1]
        q /= q.sum(dim=1, keepdim=True) * samples
    return q.mul_(samples)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of one pass over the logits; a sum and a product per entry, iteration and axis."""
    entries = d.batch * d.prototypes
    return Cost(
        wire_bytes=all_reduce_bytes(3 * 4 * d.prototypes, world_size),
        flops=(2 + 3 * 4) * entries,
        hbm_bytes=2 * 4 * entries,
        exchanges=3,
    )
