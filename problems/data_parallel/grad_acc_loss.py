"""Normalising a loss by tokens rather than by ranks, forward and backward: three scalars."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, tolerances

problem = Problem(
    number=23,
    title="Token-weighted loss normalisation",
    source="togethercomputer/xorl",
    domain="LLM training",
    summary="Turn each rank's mean loss into one mean over all ranks' tokens, and its gradient.",
    statement="Every rank of the default process group has loss, its mean over "
    "local_valid_tokens tokens, L. global_valid_tokens, G > 0, is the sum of L over all ranks. "
    "All arguments are 0-d tensors: L and G int64, the others of one floating dtype; each rank "
    "has its own loss, grad_normalized_loss and grad_loss_sum, and the last may be None, which "
    "means zero. A rank with L = 0 contributes nothing: its loss may be infinite or NaN and "
    "must not spoil the sum. Return three new 0-d tensors of the loss's dtype: (1) the sum over "
    "ranks of loss * L, divided by G; (2) that sum itself; both are the same on every rank; (3) "
    "grad_normalized_loss * L / G + grad_loss_sum * L, this rank's gradient with respect to "
    "loss. Every step may round to that dtype. The arguments must stay as they are, and all of "
    "them may differ from call to call.",
    outputs=("normalized_loss", "loss_sum", "grad_loss"),
    m_step=None,
    n_step=None,
    tolerances=tolerances(float32=1e-6, bfloat16=1e-2, float16=1.5e-3),
    tolerance_reason="every step may round to the run dtype (0.003 in bfloat16 on 8 ranks); "
    "losses and gradients cut to 3 bits of mantissa are off by 0.033",
    latency_bound_reason="one number per rank is exchanged, whatever the size",
    known_issues=(
        "Upstream's 1048576 tokens exceed float16: float16 runs overflow there.",
        "Upstream losses have either sign: where they cancel, the sum in bfloat16 depends on the "
        "order of additions.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, tokens=m * n)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened counts are small enough for sums in float16, and terms do not cancel."""
    loss = ctx.randn()
    counts = torch.full((ctx.world_size,), d.tokens, dtype=torch.int64)
    tokens = ctx.integers(counts, 1, 32, shared=True)
    empty = ctx.choose(ctx.world_size, (ctx.world_size, 0, 1))  # a rank, or none
    tokens = tokens.masked_fill(torch.arange(ctx.world_size, device=ctx.device) == empty, 0)
    hidden = loss.abs().masked_fill(tokens[ctx.rank] == 0, float("inf"))
    one, grad_loss_sum = torch.ones((), device=ctx.device), ctx.filled(0.0).abs() / 16
    doublings = ctx.integers(torch.zeros((), dtype=torch.int64), -2, 3)
    incoming = ctx.pick(one, 4 / 3 * ctx.spec.scale * doublings.exp2())  # never few bits
    return {
        "loss": ctx.pick(loss, hidden),
        "local_valid_tokens": tokens[ctx.rank].clone(),
        "global_valid_tokens": tokens.sum(),
        "grad_normalized_loss": incoming.to(ctx.dtype),
        "grad_loss_sum": ctx.choose(grad_loss_sum, (grad_loss_sum, None)),
    }


def reference(
    loss: torch.Tensor,
    local_valid_tokens: torch.Tensor,
    global_valid_tokens: torch.Tensor,
    grad_normalized_loss: torch.Tensor,
    grad_loss_sum: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    loss_sum = torch.where(local_valid_tokens == 0, 0, loss * local_valid_tokens)
    dist.all_reduce(loss_sum)
    grad = grad_normalized_loss * local_valid_tokens / global_valid_tokens
    if grad_loss_sum is not None:
        grad = grad + grad_loss_sum * local_valid_tokens
    return loss_sum / global_valid_tokens, loss_sum, grad


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    return Cost(
        wire_bytes=all_reduce_bytes(itemsize, world_size),
        flops=6,
        hbm_bytes=16 + 6 * itemsize,
    )
