"""Ring attention: keys and values travel around a ring of ranks, each holding a run of tokens."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.faint_tokens import faint_keys
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=54,
    title="Ring attention forward",
    source="zhuzilin/ring-flash-attention",
    domain="LLM training",
    summary="Exact attention of local queries over all ranks' keys and values.",
    statement="q, k and v, [B, S, H, D], are of S consecutive tokens of sequences of W*S tokens; "
    "those of rank 0 of group, of W ranks, come first (None means the default process group). For "
    "each head compute softmax(softmax_scale * q @ K^T) @ V of this rank's queries over all ranks' "
    "keys K and values V, where softmax_scale None means D^-0.5; if causal, a query sees only keys "
    "at its own place or before. Return a contiguous tensor [B, S, H, D] of the inputs' dtype; "
    "scores, softmax and sums are float32 or better, but softmax weights may round to the inputs' "
    "dtype. H is 8 and D is 64; ranks agree on shapes, dtype and parameters; B, S, softmax_scale "
    "and causal may differ from call to call. The arguments must stay as they are.",
    outputs=("out",),
    topology="a ring of all ranks",
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 1024), large=(1024, 262144)),
    tolerances=tolerances(float32=3e-5, bfloat16=2.5e-2, float16=2e-3, rms={"bfloat16": 0.1}),
    tolerance_reason="one rounding of the result is off by up to 0.003 in bfloat16, rounded "
    "softmax weights by 0.0074, of 17 million elements by 0.023 (float16: 0.0007), float32 sums by "
    "2.2e-6; inputs cut to the next smaller format by 0.27 in 16 bits, 0.02 in float32; the rms of "
    "honest answers in bfloat16 is 0.036, over int8 wires 0.14 or more",
    known_issues=("PKB's 16 tokens over all ranks measure latency, not attention.",),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/64 sequences of n/64 tokens over all ranks, one or more for each: odd where n/64 is odd."""
    seq = max(1, n // 64 // world_size) | n // 64 % 2
    return Dims(m=m, n=n, batch=max(1, m // 64), seq=seq, heads=8, width=64)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """The scale undoes the trial's scale of queries and keys: attention stays moderate."""
    power = ctx.spec.scale**2 + ctx.spec.shift**2
    scale = d.width**-0.5 / power
    q, k, v = faint_keys(ctx, (d.batch, d.seq, d.heads, d.width), scale)
    return {
        **{"q": q, "k": k, "v": v, "softmax_scale": None if power == 1 else scale},
        "causal": ctx.choose(True, (True, False)),
        "group": None,
    }


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    group = group or dist.group.WORLD
    ranks = dist.get_process_group_ranks(group)
    me, world = ranks.index(dist.get_rank()), len(ranks)
    wide = torch.promote_types(q.dtype, torch.float32)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    queries = q.transpose(1, 2).to(wide) * scale
    out, lse = torch.zeros_like(queries), torch.full_like(queries[..., :1], float("-inf"))
    held = torch.stack([k, v])
    for step in range(world):  # of the keys and values of rank me - step
        incoming, requests = torch.empty_like(held), []
        if step < world - 1:
            send = dist.P2POp(dist.isend, held, ranks[(me + 1) % world], group)
            receive = dist.P2POp(dist.irecv, incoming, ranks[me - 1], group)
            requests = dist.batch_isend_irecv([send, receive])
        if step <= me or not causal:
            keys, values = held.transpose(2, 3).to(wide)
            scores = queries @ keys.mT
            if causal and step == 0:
                future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
                scores = scores.masked_fill(future, float("-inf"))
            block = scores.logsumexp(dim=-1, keepdim=True)
            total = torch.logaddexp(lse, block)
            out = out * (lse - total).exp() + (scores - total).exp() @ values
            lse = total
        for request in requests:
            request.wait()
        held = incoming
    return out.transpose(1, 2).to(q.dtype).contiguous()


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of work spread evenly under a causal mask. The last rank receives its results at least. The
    last but one gives as much away, those before it their keys and values."""
    chunk, length = d.batch * d.seq * d.heads * d.width, world_size * d.seq
    wire = max(1, (2 * world_size - 3) / world_size) * chunk * itemsize
    flops, hbm = 2 * chunk * (length + 1), 4 * chunk * itemsize
    return Cost(wire_bytes=wire, flops=flops, hbm_bytes=hbm)
