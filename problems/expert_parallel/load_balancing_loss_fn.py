"""Load-balancing loss of a mixture of experts, averaged over ranks."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.experts import MASKED, router_logits
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=24,
    title="MoE load-balancing auxiliary loss",
    source="huggingface/transformers",
    domain="LLM training",
    summary="Expert load times mean router probability, averaged over ranks.",
    statement="Compute the Switch-style auxiliary loss of a mixture of experts. gate_logits "
    "holds this rank's router logits, [tokens, num_experts], or is a tuple or list of such "
    "tensors, one per layer, which are concatenated along the tokens. Let P be the softmax "
    "over experts, in the logits' dtype or better, and let each token choose the top_k experts "
    "of largest P. f[k, e] is the share of tokens whose k-th choice is e, p[e] the mean of P[:, "
    "e] over tokens. Sums, shares and the loss are float32 or better, but p may round to the "
    "logits' dtype. attention_mask, [batch, seq] of 0 and 1 or None, repeats over layers and "
    "gives every token a weight: f and p are then means over the tokens of weight 1. This "
    "rank's loss is num_experts * sum over k and e of f[k, e] * p[e]. Return the mean of all "
    "ranks' losses (default process group) as a float32 scalar tensor, the same on every rank. "
    "tokens may be any positive integer; top_k (1 to 3), num_experts, how many layers there are "
    "(all of as many tokens) and whether there is a mask may differ from call to call.",
    outputs=("loss",),
    also=("Data Parallel",),
    n_step=None,
    sizes=sizes(tiny=(512, 32), large=(1 << 24, 1024)),
    tolerances=tolerances(float32=5e-5, bfloat16=2e-3, float16=4e-4),
    tolerance_reason="p may round to the logits' dtype: a loss is off by 9e-4 in bfloat16, 2e-4 in "
    "float16; without a rank's last token by 5e-3, with logits cut to 3 bits of mantissa by 0.05",
    ranked_from=4,
    ranked_from_reason="of two ranks the neighbour is every other: its loss alone is enough",
    known_issues=(
        "Upstream logits make the loss 2.04 on every rank in every trial: a constant passes.",
        "Upstream inputs never have several layers or a mask.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    return Dims(m=m, n=n, experts=8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: tokens that count have a place that MASKED divides, the last one among them."""
    experts = ctx.choose_untimed(d.experts, (d.experts, d.experts + 4, d.experts - 3))
    layers = ctx.choose_untimed(0, (0, 2, 3))  # 0 is one that stands alone
    tokens = d.m // max(1, layers)
    place = ctx.sample(torch.arange(tokens), tokens)
    place[-1] = 0
    logits = [router_logits(ctx, experts, place) for _ in range(max(1, layers))]
    stacked = tuple(logits) if ctx.choose(True, (True, False)) else logits
    return {
        "gate_logits": stacked if layers else logits[0],
        "num_experts": experts,
        "top_k": ctx.choose(2, (2, 1, 3)),
        "attention_mask": ctx.choose(None, (None, (place % MASKED == 0).long().view(1, -1))),
    }


def reference(
    gate_logits: torch.Tensor | tuple[torch.Tensor, ...] | list[torch.Tensor],
    num_experts: int,
    top_k: int = 2,
    attention_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    layers = [gate_logits] if isinstance(gate_logits, torch.Tensor) else list(gate_logits)
    probabilities = torch.cat(layers).softmax(dim=-1)
    chosen = probabilities.topk(top_k, dim=-1).indices
    wide = torch.promote_types(probabilities.dtype, torch.float32)
    load = torch.nn.functional.one_hot(chosen, num_experts).to(wide)
    if attention_mask is None:
        f, p = load.mean(dim=0), probabilities.mean(dim=0)
    else:
        weight = attention_mask.reshape(-1, 1).repeat(len(layers), 1).to(wide)
        f = (load * weight.unsqueeze(-1)).sum(dim=0) / weight.sum()
        p = (probabilities * weight).sum(dim=0) / weight.sum()
    loss = num_experts * (f * p).sum()
    dist.all_reduce(loss)
    return loss / dist.get_world_size()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    return Cost(
        wire_bytes=all_reduce_bytes(4, world_size),
        flops=6 * d.m * d.experts,
        hbm_bytes=d.m * d.experts * itemsize + 4,
    )
