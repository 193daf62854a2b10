"""Gradient-norm clipping when expert weights live on their own mesh."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, tolerances

problem = Problem(
    number=22,
    title="Gradient-norm clipping with expert parallelism",
    source="ByteDance-Seed/VeOmni",
    domain="LLM training",
    summary="One norm clips dense and expert gradients, each summed over its own groups.",
    statement="Clip gradients to one joint norm, in place. The expert gradients are first "
    "multiplied by 1/ep_size when ep_size > 1. Then the p-norm, p = norm_type, is taken over "
    "all gradients of all ranks: the sum of |g|^p over the dense tensors (non_ep_grad_tensors) "
    "is summed over fsdp_group, the one over the scaled expert tensors over ep_fsdp_group and "
    "then over ep_group, where a group that is None is skipped; the norm is (dense + "
    "expert)^(1/p), accumulated in float32 or better. If it exceeds max_norm, every gradient "
    "is multiplied in place by max_norm / norm. Return the norm before clipping as a float32 "
    "scalar tensor, the same on every rank if no group is None. Each list holds a tensor or more; "
    "they keep their dtype and are fresh in every call. max_norm and norm_type (2 or 3) may vary.",
    mesh=("ep_fsdp", "ep"),
    outputs=("total_norm",),
    mutates=("non_ep_grad_tensors", "ep_grad_tensors"),
    also=("Expert Parallel",),
    tolerances=tolerances(float32=1e-4, bfloat16=1e-2, float16=4e-3),
    output_tolerances={"total_norm": tolerances(float32=1e-4, bfloat16=1e-4, float16=1e-4)},
    tolerance_reason="a gradient rounds to the run dtype up to thrice (scale, factor, product); "
    "a float32 sum is off by 1e-5, a norm without a rank of 8 by 2 % or more, of half by 0.3 %",
    ranked_from=4,
    ranked_from_reason="on two ranks ep is 1: a kernel that ignores ep_group and ep_size is right",
    known_issues=(
        "A call divides the expert gradients again: the inputs must be restored before each call.",
        "PKB compares the returned norm only, never the gradients.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    ep = max(1, world_size // 2)
    return Dims(m=m, n=n, ep=ep, ep_fsdp=world_size // ep)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Factors below 6e-5 would lose digits in float16. A few elements hold an eighth of the sum."""
    norm_type = ctx.choose(2.0, (2.0, 3.0))
    spread = (ctx.spec.scale**2 + ctx.spec.shift**2) ** 0.5
    dense, expert = (ctx.choose_untimed(1, (1, 2, 3)) for _ in range(2))
    usual = spread * ((dense + expert) * d.m * d.n * ctx.world_size) ** (1 / norm_type)
    peak = (d.m * d.n / 64) ** 0.5
    groups = map(ctx.group, ("world", "ep_fsdp", "ep"))
    every, sharers, ep = (ctx.choose_untimed(one, (one, one, None)) for one in groups)
    return {
        "non_ep_grad_tensors": [ctx.peaked(ctx.randn(d.m, d.n), peak) for _ in range(dense)],
        "ep_grad_tensors": [ctx.peaked(ctx.randn(d.m, d.n), peak) for _ in range(expert)],
        "max_norm": ctx.choose(1.0, (0.3 * usual, 0.02 * usual, 1e9)),
        "norm_type": norm_type,
        "ep_size": d.ep,
        "fsdp_group": every,
        "ep_fsdp_group": sharers,
        "ep_group": ep if d.ep > 1 else None,
    }


def reference(
    non_ep_grad_tensors: list[torch.Tensor],
    ep_grad_tensors: list[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    ep_size: int = 1,
    fsdp_group: dist.ProcessGroup | None = None,
    ep_fsdp_group: dist.ProcessGroup | None = None,
    ep_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    def power_sum(grads: list[torch.Tensor], *groups: dist.ProcessGroup | None) -> torch.Tensor:
        wide = torch.promote_types(grads[0].dtype, torch.float32)
        norms = [torch.linalg.vector_norm(g, norm_type, dtype=wide) for g in grads]
        total = torch.stack(norms).pow(norm_type).sum()
        for group in groups:
            if group is not None:
                dist.all_reduce(total, group=group)
        return total

    if ep_size > 1:
        torch._foreach_mul_(ep_grad_tensors, 1 / ep_size)
    dense = power_sum(non_ep_grad_tensors, fsdp_group)
    expert = power_sum(ep_grad_tensors, ep_fsdp_group, ep_group)
    total_norm = (dense + expert).pow(1 / norm_type)
    factor = (max_norm / total_norm).clamp(max=1.0)
    for grad in [*non_ep_grad_tensors, *ep_grad_tensors]:
        grad.mul_(factor)
    return total_norm


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    grads, wire_bytes = 2 * d.m * d.n, all_reduce_bytes(2 * 4, world_size)
    return Cost(wire_bytes=wire_bytes, flops=3 * grads, hbm_bytes=2 * grads * itemsize)
