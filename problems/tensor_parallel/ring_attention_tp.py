"""An attention layer whose heads are split over one axis of a mesh and whose tokens over the other.

The ring of keys and values is that of problem 54.
"""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.faint_tokens import CALM, faint_layer, lots
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=55,
    title="Ring attention layer with tensor parallelism",
    source="zhuzilin/ring-flash-attention",
    domain="LLM training",
    summary="Project to local heads, attend along a ring, project back, sum over tensor ranks.",
    statement="The ranks form a cp x tp mesh: the tp ranks of tp_group hold the same S consecutive "
    "tokens and H/tp of the H = num_heads heads each, the cp ranks of cp_group hold the same heads "
    "and follow each other along sequences of cp*S tokens, those of the group's rank 0 first; "
    "either group may be None, the default process group. hidden_states is [B, S, E]; w_qkv, "
    "[3*h*D, E] with h = H/tp, has the rows of queries, keys and values in this order, each by "
    "head. Take qkv = hidden_states @ w_qkv^T and, for each head, softmax(softmax_scale * q @ K^T) "
    "@ V of the local queries over the keys K and values V of all ranks of cp_group, where "
    "softmax_scale None means D^-0.5; if causal, a query sees only keys at its own place or "
    "before. Join the heads to [B, S, h*D], multiply by w_o^T, w_o being [E, h*D], and sum over "
    "tp_group. Return this, a contiguous tensor [B, S, E] of the inputs' dtype. Scores, softmax "
    "and its sums are float32 or better; qkv, softmax weights, joined heads, products and the sum "
    "over ranks may round to the inputs' dtype. hidden_states is equal within tp_group, weights "
    "are equal within cp_group. E is 512, H is 8, D is 64, tp is 2; B, S, softmax_scale and causal "
    "may differ from call to call. The arguments must stay as they are.",
    outputs=("out",),
    mesh=("cp", "tp"),
    topology="rings and all-reduces along the two axes of a cp x tp mesh, tp = 2",
    also=("Context Parallel",),
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 1024), large=(2048, 131072)),
    tolerances=tolerances(float32=4e-5, bfloat16=0.1, float16=1.3e-2, rms={"bfloat16": 0.045}),
    tolerance_reason="qkv, heads and products round to the run dtype: off by up to 0.019 in "
    "bfloat16, 0.036 where products are split as well (float16: 0.0045), float32 by 3e-6; inputs "
    "cut to the next smaller format by 0.34 in 16 bits, 0.027 in float32; "
    "the rms of honest answers in bfloat16 is 0.039 at most, over int8 wires 0.05 or more",
    ranked_from=4,
    ranked_from_reason="on two ranks cp is 1: no other rank's tokens are attended to",
    known_issues=(
        "PKB's outputs are of the order of 0.1, so its absolute tolerance allows errors of 10 %.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/64 sequences of n/64 tokens over the context axis, at least one for each rank, and an odd
    number where n/64 is odd."""
    cp = world_size // 2
    seq = max(1, n // 64 // cp) | n // 64 % 2
    return Dims(m=m, n=n, cp=cp, tp=2, batch=max(1, m // 64), seq=seq, heads=8, width=512)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Everybody draws all chunks and all weights. The scale undoes the trial's, in both factors."""
    power, inner = ctx.spec.scale**2 + ctx.spec.shift**2, d.width // d.tp
    chunks, layers = [], []
    for index in range(d.cp):
        ctx.reseed_upstream(1000 + index)
        chunks.append(ctx.randn(d.batch, d.seq, d.width, shared=True))
    for index in range(d.tp):
        ctx.reseed_upstream(11000 + index)
        shapes = ((3 * inner, d.width), (d.width, inner))
        plain = [0.02 * ctx.randn(*shape, shared=True) for shape in shapes]
        layers.append([ctx.varied(w, spread=inner**-0.5, shared=True) for w in plain])
    outward = ctx.gains(d.width, 1, share=1 / 4, shared=True)
    lot = lots(ctx, d.cp, d.batch, d.seq, 1, shared=True)
    lot[0, :, 0] = CALM
    loud = lots(ctx, d.width, shared=True) % 2 == 1
    published, w_o = layers[ctx.rank % d.tp]
    hidden, heads = chunks[ctx.rank // d.tp], published.view(3, d.heads // d.tp, -1, d.width)
    scale = heads.shape[2] ** -0.5 / power
    faint, w_qkv = faint_layer(hidden, heads, lot[ctx.rank // d.tp], loud, scale)
    return {
        "hidden_states": ctx.pick(hidden, faint),
        "w_qkv": ctx.pick(published, w_qkv.view_as(published)),
        "w_o": w_o * outward,
        "num_heads": d.heads,
        "softmax_scale": None if power == 1 else scale,
        "causal": ctx.choose(True, (True, False)),
        "tp_group": ctx.group("tp"),
        "cp_group": ctx.group("cp"),
    }


def _ring_attention(
    q: torch.Tensor,
    kv: torch.Tensor,
    scale: float,
    causal: bool,
    group: dist.ProcessGroup | None,
) -> torch.Tensor:
    """Of queries [B, S, H, D] over the keys and values, [2, B, S, H, D], of all ranks."""
    group = group or dist.group.WORLD
    ranks = dist.get_process_group_ranks(group)
    me, world = ranks.index(dist.get_rank()), len(ranks)
    wide = torch.promote_types(q.dtype, torch.float32)
    queries = q.transpose(1, 2).to(wide) * scale
    out, lse = torch.zeros_like(queries), torch.full_like(queries[..., :1], float("-inf"))
    for step in range(world):  # over the chunk of rank me - step
        incoming, requests = torch.empty_like(kv), []
        if step < world - 1:
            send = dist.P2POp(dist.isend, kv, ranks[(me + 1) % world], group)
            receive = dist.P2POp(dist.irecv, incoming, ranks[me - 1], group)
            requests = dist.batch_isend_irecv([send, receive])
        if step <= me or not causal:
            keys, values = kv.transpose(2, 3).to(wide)
            scores = queries @ keys.mT
            if causal and step == 0:
                future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
                scores = scores.masked_fill(future, float("-inf"))
            total = torch.logaddexp(lse, scores.logsumexp(dim=-1, keepdim=True))
            out = out * (lse - total).exp() + (scores - total).exp() @ values
            lse = total
        for request in requests:
            request.wait()
        kv = incoming
    return out.transpose(1, 2).to(q.dtype)


def reference(
    hidden_states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    num_heads: int,
    softmax_scale: float | None = None,
    causal: bool = False,
    tp_group: dist.ProcessGroup | None = None,
    cp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    tp, (batch, seq, _) = dist.get_world_size(tp_group), hidden_states.shape
    qkv = (hidden_states @ w_qkv.T).view(batch, seq, 3, num_heads // tp, -1).movedim(2, 0)
    scale = qkv.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    context = _ring_attention(qkv[0], qkv[1:].contiguous(), scale, causal, cp_group)
    out = context.reshape(batch, seq, -1) @ w_o.T
    if tp > 1:
        dist.all_reduce(out, group=tp_group)
    return out


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """With the work spread evenly under a causal mask. Ranks receive as much as they return, as
    earlier tokens or as results; on one context rank the partner's weights are enough."""
    tokens, inner = d.batch * d.seq, d.width // d.tp
    total, weights = tokens * d.width, 4 * inner * d.width
    return Cost(
        wire_bytes=(total if d.cp > 1 else min(total, weights)) * itemsize,
        flops=8 * inner * total + 2 * tokens * inner * (d.cp * d.seq + 1),
        hbm_bytes=(2 * total + weights) * itemsize,
    )
