"""A mixture of eight experts: route tokens, run the experts where they live, and combine."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.experts import answer_layer, answer_sizes, gate, wishes
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=31,
    title="Expert-parallel MoE forward (8 experts)",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Route tokens to 8 experts over all ranks, run the MLPs there, add up the results.",
    statement="Forward pass of a mixture of experts over the G ranks of group (None means the "
    "default process group). hidden_states holds this rank's own tokens, [..., H], T rows "
    "when its leading axes are flattened. Its router: logits = hidden_states @ gate_weight^T "
    "+ gate_bias, with gate_weight [num_experts, H] and gate_bias [num_experts] or None; p is "
    "the softmax of the logits, and each token chooses the top_k experts of largest p. Their "
    "weights are their p, not renormalised. num_experts = 8; expert e lives on rank e // "
    "(num_experts / G) of the group, and all experts of a rank are one and the same MLP, that "
    "rank's f(x) = down_proj(silu(gate_proj(x)) * up_proj(x)), nn.Linear layers with bias: H "
    "to I, H to I and I to H. Return for each of this rank's tokens the sum, over its chosen "
    "experts, of weight times f of the expert's rank at the token: a contiguous tensor [T, H] "
    "in the dtype of hidden_states. Every step may round to that dtype. Routers and MLPs "
    "differ from rank to rank, and the routing may be as uneven as it likes. Everything is "
    "fresh in every call; T, H, I, top_k (1 to 3) and whether there is a gate_bias may differ "
    "from call to call. Gradients are not wanted.",
    outputs=("combined",),
    sizes=sizes(tiny=(32, 48)),
    tolerances=tolerances(float32=2e-5, bfloat16=0.12, float16=1.5e-2, rms={"bfloat16": 0.047}),
    tolerance_reason="every product, gate and weight may round to the run dtype, and rows of "
    "several experts may cancel: elements are off by up to 0.1 in bfloat16, 0.012 in float16, 4e-6 "
    "in float32. Hardened routers keep the last chosen logit 1 above the next, so rounding chooses "
    "no expert. The rms of honest answers in bfloat16 is 0.038 tolerances at most; over wires of 8 "
    "bits, one collective alone included, 0.05 or more, with a rational function for silu 0.07, of "
    "inputs cut to 3 bits of mantissa 0.5",
    known_issues=(
        "Under `upstream` the largest logits are often closer than rounding: an honest kernel "
        "may send tokens to other experts, and fail there.",
        "All experts of a rank share one MLP, in the published task too.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """The MLP is n wide, at most 128, which is PKB's fixed width, or 127 where n is odd."""
    return Dims(m=m, n=n, inner=min(128 - n % 2, n), experts=8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    top_k = ctx.choose(2, (2, 1, 3))
    states, router = ctx.randn(d.m, d.n), ctx.randn(d.experts, d.n)
    bias = ctx.varied(ctx.randn(d.experts), spread=0.25)
    with_bias = ctx.choose(True, (True, False))
    liking = wishes(ctx, d.m, d.experts, top_k)
    chosen = torch.zeros_like(liking).scatter_(1, liking.topk(top_k).indices, 1.5)
    logits = (chosen - 0.75 + ctx.varied(torch.zeros(d.m, d.experts)).tanh() / 4).double()
    axes = torch.linalg.qr(router.double().T).Q.T
    # The part of each token that its router sees is replaced: chosen experts lead by 1 or more.
    size = states.double().square().mean().sqrt().clamp(min=1.0)
    wanted = size * (logits - with_bias * bias.double()) - states.double() @ axes.T
    hidden = (states.double() + wanted @ axes).to(ctx.dtype)
    gains = ctx.gains(d.n, share=1 / 8, shared=True)
    seen = gains * max(1.0, ctx.spec.scale / 4)  # large sums round to errors as large as a wire's
    return {
        "hidden_states": ctx.pick(states, hidden) * gains,
        "gate_weight": ctx.pick(router, (axes / size).to(ctx.dtype)) / gains,
        "gate_bias": bias if with_bias else None,
        "gate_proj": gate(ctx, d.n, d.inner, seen),
        "up_proj": ctx.linear(d.n, d.inner, seen),
        "down_proj": answer_layer(ctx, d.inner, answer_sizes(ctx, d.n)),
        "num_experts": d.experts,
        "top_k": top_k,
        "group": None,
    }


def reference(
    hidden_states: torch.Tensor,
    gate_weight: torch.Tensor,
    gate_bias: torch.Tensor | None,
    gate_proj: torch.nn.Linear,
    up_proj: torch.nn.Linear,
    down_proj: torch.nn.Linear,
    num_experts: int,
    top_k: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    tokens = hidden_states.reshape(-1, hidden_states.shape[-1])
    logits = tokens @ gate_weight.T
    if gate_bias is not None:
        logits += gate_bias
    weights, experts = logits.softmax(dim=-1).topk(top_k, dim=-1)
    order = experts.flatten().argsort(stable=True)  # rows by expert, then by token
    sent = tokens[order // top_k]
    owners = experts.flatten() // (num_experts // world)
    going = owners.new_zeros(world).index_add_(0, owners, torch.ones_like(owners))
    coming = torch.empty_like(going)
    dist.all_to_all_single(coming, going, group=group)
    send_splits, receive_splits = torch.stack([going, coming]).tolist()
    received = sent.new_empty(sum(receive_splits), sent.shape[1])
    dist.all_to_all_single(received, sent, receive_splits, send_splits, group=group)
    # All experts of a rank are one MLP: rows need no sorting by expert.
    inner = torch.nn.functional.silu(gate_proj(received)) * up_proj(received)
    answered = down_proj(inner)
    returned = torch.empty_like(sent)
    dist.all_to_all_single(returned, answered, send_splits, receive_splits, group=group)
    rows = torch.empty_like(returned)
    rows[order] = returned
    return (rows.view(len(tokens), top_k, -1) * weights.unsqueeze(-1)).sum(dim=1)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of even routing to two experts. A token goes to a rank once, and comes back as one sum; or
    the ranks gather each other's MLPs."""
    elsewhere, mlp = d.experts - d.experts // world_size, 3 * d.inner * d.n
    missed = elsewhere * (elsewhere - 1) / (d.experts * (d.experts - 1))
    rows = world_size * d.m * (1 - missed)
    per_rank = min(2 * rows / world_size * d.n, mlp)
    return Cost(
        wire_bytes=(world_size - 1) * per_rank * itemsize,
        flops=2 * d.m * d.n * (d.experts + 2) + rows * 2 * mlp,
        hbm_bytes=(2 * d.m * d.n + d.experts * d.n + mlp) * itemsize,
    )
