"""Backward of ring attention, its gradients averaged over replicas.

Keys and values travel around the ring, and the sums of their gradients behind them.
"""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.faint_tokens import CALM, FAINT, lots, with_faint
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=57,
    title="Ring attention backward with data-parallel averaging",
    source="zhuzilin/ring-flash-attention",
    domain="LLM training",
    summary="Gradients of q, k and v of ring attention, averaged over data-parallel ranks.",
    statement="The ranks form a dp x cp mesh: the cp ranks of cp_group hold S consecutive tokens "
    "each of sequences of cp*S tokens, those of its rank 0 first; a dp_group joins the dp ranks "
    "that hold the same places of different data. cp_group None means the default process group, "
    "dp_group None no averaging. q, k, v, out and dout are [B, S, H, D] of one dtype: this rank's "
    "queries, keys and values, the result of attention for its queries, and the gradient of that. "
    "softmax_lse, [B, H, S], float32, is the logarithm of the sum of exp(score) of each query. "
    "They are given for the whole sequence and need not be computed again: take them as they are. "
    "For each head, query i and key j of the same cp_group, with c = softmax_scale or D^-0.5 if "
    "that is None, P_ij = exp(c * q_i.k_j - lse_i) and dS_ij = P_ij * (dout_i.v_j - dout_i.out_i); "
    "if causal, both are 0 for keys after the query. Then dq_i = c * sum over j of dS_ij k_j, dk_j "
    "= c * sum over i of dS_ij q_i and dv_j = sum over i of P_ij dout_i. Return the mean over "
    "dp_group of dq, dk and dv of this rank's tokens: three contiguous tensors [B, S, H, D] of the "
    "inputs' dtype. P, dS and the sums are float32 or better; P and dS may round to the inputs' "
    "dtype before a product, and so may the gradients before they are averaged and their sum over "
    "ranks. H is 8, D is 64, dp is 2; B, S, softmax_scale and causal may differ from call to call. "
    "The arguments must stay as they are.",
    outputs=("dq", "dk", "dv"),
    mesh=("dp", "cp"),
    topology="rings along the rows and all-reduces along the columns of a dp x cp mesh, dp = 2",
    also=("Data Parallel",),
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 1024), large=(1024, 65536)),
    tolerances=tolerances(float32=3e-5, bfloat16=8e-2, float16=9e-3, rms={"bfloat16": 0.037}),
    tolerance_reason="gradients round to the run dtype before they are averaged: off by up to "
    "0.032 in bfloat16, 0.048 where P and dS are rounded too (float16: 0.0041), float32 by 1e-5; "
    "inputs cut to the next smaller format by 3 in 16 bits, 0.08 in float32; without small weights "
    "by 0.45; the rms of honest answers in bfloat16 is 0.023 at most, over int8 wires 0.055",
    ranked_from=4,
    ranked_from_reason="on two ranks cp is 1: no other rank's tokens are attended to",
    known_issues=(
        "PKB computes out and softmax_lse from each rank's own keys: where cp > 1 its results are "
        "well defined, but no gradients. Hardened inputs come from the whole sequence.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/64 sequences of n/64 tokens over the context axis, at least one for each rank."""
    cp = world_size // 2
    seq = max(1, max(1, n // 64) // cp)
    return Dims(m=m, n=n, dp=2, cp=cp, batch=max(1, m // 64), seq=seq, heads=8, width=64)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Everybody draws for all ranks. The scale undoes the trial's scale of queries and keys, and
    means shrink with the values: gradients are differences that large means would drown. A quarter
    of keys is faint, with large values, so that small weights count."""
    scale, shift, shape = ctx.spec.scale, ctx.spec.shift, (d.batch, d.seq, d.heads, d.width)
    power, lift = scale**2 * (1 + shift**2), shift * (scale - 1)
    softmax_scale = None if power == 1 else d.width**-0.5 / power
    causal = ctx.choose(False, (False, True))
    replica, place = divmod(ctx.rank, d.cp)
    drawn = []
    for rank in range(ctx.world_size):
        ctx.reseed_upstream(1000 + 100 * (rank // d.cp) + rank % d.cp)
        q, k, v, dout = (ctx.randn(*shape, shared=True) + lift for _ in ("q", "k", "v", "dout"))
        lot = lots(ctx, *shape[:3], 1, shared=True)
        lot[:, : int(rank % d.cp == 0)] = CALM
        queries, keys, _ = with_faint(q, k, v, lot, softmax_scale or d.width**-0.5)
        values = torch.where(lot == FAINT, 8 * v, v)
        drawn.append(ctx.pick([q, k, v, dout], [queries, keys, values, dout]))
    q, k, v, dout = drawn[ctx.rank]
    row = drawn[replica * d.cp : (replica + 1) * d.cp]
    seen = ctx.pick([drawn[ctx.rank]], row[: place + 1] if causal else row)
    wide = torch.promote_types(ctx.dtype, torch.float32)
    keys, values = (torch.cat([chunk[i] for chunk in seen], dim=1).to(wide) for i in (1, 2))
    scores = torch.einsum("bshd,bthd->bhst", q.to(wide), keys) * (softmax_scale or d.width**-0.5)
    if causal:
        future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(place * d.seq + 1)
        scores = scores.masked_fill(future, float("-inf"))
    out = torch.einsum("bhst,bthd->bshd", scores.softmax(dim=-1), values)
    return {
        "dout": dout,
        "q": q,
        "k": k,
        "v": v,
        "out": out.to(ctx.dtype).contiguous(),
        "softmax_lse": scores.logsumexp(dim=-1),
        "softmax_scale": softmax_scale,
        "causal": causal,
        "cp_group": ctx.group("cp"),
        "dp_group": ctx.group("dp"),
    }


def _pass_on(
    held: list[torch.Tensor], group: dist.ProcessGroup | None
) -> tuple[list[torch.Tensor], list[dist.Work]]:
    """Start sending tensors to the next rank of the ring and receiving those of the one before."""
    group = group or dist.group.WORLD
    ranks = dist.get_process_group_ranks(group)
    me = ranks.index(dist.get_rank())
    after, before = ranks[(me + 1) % len(ranks)], ranks[me - 1]
    incoming = [torch.empty_like(tensor) for tensor in held]
    operations = [dist.P2POp(dist.isend, tensor, after, group) for tensor in held]
    operations += [dist.P2POp(dist.irecv, tensor, before, group) for tensor in incoming]
    return incoming, dist.batch_isend_irecv(operations) if held else []


def reference(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    cp_group: dist.ProcessGroup | None = None,
    dp_group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    me, world = dist.get_rank(cp_group), dist.get_world_size(cp_group)
    wide = torch.promote_types(q.dtype, torch.float32)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    queries, upper = q.transpose(1, 2).to(wide), dout.transpose(1, 2).to(wide)
    drift = (upper * out.transpose(1, 2).to(wide)).sum(dim=-1, keepdim=True)
    lse = softmax_lse.unsqueeze(-1)
    dq, kv = torch.zeros_like(queries), torch.stack([k, v]).transpose(2, 3).contiguous()
    sums: list[torch.Tensor] = []
    for step in range(world):  # over the chunk of rank me - step, whose sums are one hop behind
        incoming, requests = _pass_on([*sums, kv] if step < world - 1 else sums, cp_group)
        keys, values = kv.to(wide)
        own = torch.zeros_like(kv, dtype=wide)
        if step <= me or not causal:
            p = (queries @ keys.mT * scale - lse).exp()
            p = p.tril() if causal and step == 0 else p
            ds = p * (upper @ values.mT - drift) * scale
            dq += ds @ keys
            own = torch.stack([ds.mT @ queries, p.mT @ upper])
        for request in requests:
            request.wait()
        sums = [own + incoming[0] if step else own]
        kv = incoming[-1] if step < world - 1 else kv
    if world > 1:
        sums, requests = _pass_on(sums, cp_group)
        for request in requests:
            request.wait()
    grads = torch.stack([dq, *sums[0]]).transpose(2, 3).to(q.dtype).contiguous()
    if dp_group is not None and dist.get_world_size(dp_group) > 1:
        dist.all_reduce(grads, group=dp_group)
        grads /= dist.get_world_size(dp_group)
    return grads[0], grads[1], grads[2]


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """What a rank must give away: its queries, keys, values and dout, or, where there is no ring,
    the three gradients that its partner averages."""
    chunk = d.batch * d.seq * d.heads * d.width
    return Cost(
        wire_bytes=(4 if d.cp > 1 else 3) * chunk * itemsize,
        flops=10 * chunk * d.seq * d.cp,
        hbm_bytes=8 * chunk * itemsize + 4 * d.batch * d.heads * d.seq,
        exchanges=2 if d.cp > 1 else 1,
    )
