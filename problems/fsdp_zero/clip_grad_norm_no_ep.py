"""Gradient-norm clipping over the shards of one data-parallel group."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=21,
    title="Gradient-norm clipping (FSDP)",
    source="ByteDance-Seed/VeOmni",
    domain="LLM training",
    summary="Take one norm over the gradient shards of all ranks and clip them to it, in place.",
    statement="grad_tensors is this rank's list of gradient shards, of one dtype; entries may be "
    "None and are skipped, but one at least is a tensor. The total norm is the p-norm, p = "
    "norm_type, over all elements of all shards of all ranks of fsdp_group: (sum of "
    "|g|^p)^(1/p), accumulated in float32 or better. If fsdp_group is None, nothing is "
    "exchanged and the norm is that of the rank's own shards. If the norm exceeds max_norm, "
    "multiply every gradient in place by max_norm / norm (no epsilon); the factor and the "
    "product may round to the gradients' dtype. Return the norm before clipping as a float32 "
    "scalar tensor, the same on every rank of the group. Gradients are fresh in every call; "
    "the number of shards, max_norm and norm_type (2 or 3) may differ from call to call.",
    outputs=("total_norm",),
    mutates=("grad_tensors",),
    also=("Data Parallel",),
    sizes=sizes(large=(8192, 4096)),
    tolerances=tolerances(float32=2e-5, bfloat16=1e-2, float16=2e-3),
    output_tolerances={"total_norm": tolerances(float32=2e-5, bfloat16=2e-5, float16=2e-5)},
    tolerance_reason="the clip factor and the product may both round to the run dtype (0.008 in "
    "bfloat16), and float32 sums over millions of elements are off by 1e-5; gradients cut to 3 "
    "bits of mantissa are off by 0.07, the norm of every second one by 0.006 or more",
    known_issues=(
        "A second call on the same gradients finds them clipped: the inputs must be restored "
        "before each call.",
        "PKB compares the returned norm only, never the gradients.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, shards=3)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Clips to a share of the usual norm: a factor below 6e-5 loses its digits in float16. Few
    elements hold an eighth of the sum of squares, so that no sample tells the norm."""
    norm_type = ctx.choose(2.0, (2.0, 3.0))
    spread = (ctx.spec.scale**2 + ctx.spec.shift**2) ** 0.5
    shards = ctx.choose_untimed(d.shards, (d.shards, d.shards + 2, 1))
    usual = spread * (shards * d.m * d.n * ctx.world_size) ** (1 / norm_type)
    drawn = [ctx.randn(d.m, d.n) for _ in range(shards)]
    first, *others = (ctx.peaked(shard, (d.m * d.n / 64) ** 0.5) for shard in drawn)
    world = ctx.group("world")
    frozen: tuple[None, ...] = ctx.choose((), ((), (None,)))
    return {
        "grad_tensors": [first, *frozen, *others],
        "max_norm": ctx.choose(1.0, (0.3 * usual, 0.02 * usual, 1e9)),
        "norm_type": norm_type,
        "fsdp_group": ctx.choose_untimed(world, (world, None)),
    }


def reference(
    grad_tensors: list[torch.Tensor | None],
    max_norm: float,
    norm_type: float = 2.0,
    fsdp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    grads = [grad for grad in grad_tensors if grad is not None]
    wide = torch.promote_types(grads[0].dtype, torch.float32)
    norms = [torch.linalg.vector_norm(grad, norm_type, dtype=wide) for grad in grads]
    total = torch.stack(norms).pow(norm_type).sum()
    if fsdp_group is not None:
        dist.all_reduce(total, group=fsdp_group)
    total_norm = total.pow(1 / norm_type)
    factor = (max_norm / total_norm).clamp(max=1.0)  # spares the host a look at the norm
    for grad in grads:
        grad.mul_(factor)
    return total_norm


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    grads = d.shards * d.m * d.n
    return Cost(
        wire_bytes=all_reduce_bytes(4, world_size),
        flops=3 * grads,
        hbm_bytes=2 * grads * itemsize,
    )
