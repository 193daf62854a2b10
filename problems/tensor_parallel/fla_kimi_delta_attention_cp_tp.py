"""Kimi Delta Attention on a mesh: tokens sharded along one axis, outputs summed along the other."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=74,
    title="Kimi Delta Attention forward with context and tensor parallelism",
    source="fla-org/flash-linear-attention",
    domain="Kernel libraries",
    summary="A delta-rule scan of a sharded sequence with decay per channel, summed over tp_group.",
    statement="q, k and g are [B, ls, H, Dk], v is [B, ls, H, Dv], beta is [B, ls, H]: this rank's "
    "ls tokens of sequences of T = cp*ls tokens, of which rank 0 of cp_group holds the first "
    "(None means the default process group; cp is its size). a_log, [H], and dt_bias, [H*Dk], are "
    "bfloat16 and the same on every rank; dt_bias is indexed h*Dk + channel. Divide every q and k "
    "by max(its norm, 1e-12) and q by sqrt(Dk) as well; b = sigmoid(beta); d = exp(-5 * "
    "sigmoid(exp(a_log) * (g + dt_bias))) for every token, head and channel. With a state M "
    "[Dk, Dv] of zeros for each head, for token after token: multiply row c of M by d[c]; u = b * "
    "(v - M^T k); M = M + k u^T; o = M^T q. Round o to q's dtype and, if tp_group is not None, "
    "add it up over tp_group, whose ranks hold other inputs for the same tokens. Return o of "
    "this rank's tokens, a contiguous [B, ls, H, Dv] of q's dtype. Norms, decays, the sums of "
    "products and the state are float32 or better; factors of a matrix product may round to the "
    "inputs' dtype. The arguments must stay as they are. B, ls, H, Dk and Dv may differ from call "
    "to call.",
    outputs=("out",),
    mesh=("cp", "tp"),
    topology="rows and columns of a cp x tp mesh",
    also=("Context Parallel",),
    m_step=16,
    n_step=128,
    sizes=sizes(tiny=(640, 384), large=(131072, 1024)),
    tolerances=tolerances(float32=1e-4, bfloat16=5e-2, float16=1e-2, rms={"bfloat16": 0.04}),
    tolerance_reason="a kernel that rounds both factors of every matrix product to bfloat16 is off "
    "by up to 0.022, rounding outputs and their sum alone by 0.014, float32 by 6e-6; inputs cut "
    "to 3 bits of mantissa cost 0.33; "
    "the rms of honest answers in bfloat16 is 0.025 at most, over int8 wires 0.07 or more",
    ranked_from=4,
    ranked_from_reason="on two ranks tp is 1, and states of several ranks are never composed",
    known_issues=(
        "Upstream outputs are around 0.006: PKB's absolute tolerance takes zeros for most.",
        "Upstream states fade to a tenth in a token, so other ranks' tokens hardly matter; some "
        "hardened channels remember hundreds of tokens.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """ls = m/16 and Dk = Dv = n/8, which is PKB's fixed shape at m = n = 1024."""
    tp = 2 if world_size >= 4 and world_size % 2 == 0 else 1
    return Dims(m=m, n=n, cp=world_size // tp, tp=tp, ls=max(1, m // 16), heads=16, width=n // 8)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Gates keep their spread in all trials: some channels forget at once, others hardly ever."""
    shape = (1, d.ls, d.heads, d.width)
    slopes = [
        torch.linspace(-0.1, 0.1, length, dtype=torch.bfloat16, device=ctx.device)
        for length in (d.heads, d.heads * d.width)
    ]
    q, k, v = ctx.randn(*shape), ctx.randn(*shape), ctx.randn(*shape)
    dt_bias = ctx.varied(slopes[1], spread=3.0, shared=True) + ctx.pick(0, -4)
    return {
        "q": q,
        "k": k,
        "v": v,
        "g": ctx.varied(ctx.randn(*shape)),
        "beta": ctx.randn(*shape[:3]),
        "a_log": ctx.varied(slopes[0], spread=0.3, shared=True).to(torch.bfloat16),
        "dt_bias": dt_bias.to(torch.bfloat16),
        "cp_group": ctx.group("cp"),
        "tp_group": ctx.group("tp") if d.tp > 1 else None,
    }


def _delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """[B, H, T, D] to outputs [B, H, T, Dv]; `decay` is its logarithm. 64 tokens at a time: what
    they write depends on each other through a triangular system, and on the state they meet."""
    length, size, rows = q.shape[2], 64, 16

    def chunks(x: torch.Tensor) -> torch.Tensor:
        padded = torch.nn.functional.pad(x, (0, 0, 0, -length % size))
        return padded.view(*x.shape[:2], -1, size, x.shape[3])

    q, k, v, decay, beta = map(chunks, (q, k, v, decay, beta))
    since = decay.cumsum(dim=-2)  # the start of the chunk
    scores = []
    for first in range(0, size, rows):  # 16 steps of -5 at most: exp stays finite
        part, anchor = slice(first, first + rows), since[..., first : first + 1, :]
        left = torch.stack([q, k])[..., part, :] * (since[..., part, :] - anchor).exp()
        right = k * (anchor - since).clamp(max=80).exp()
        scores.append(left @ right.mT)
    within, among = torch.cat(scores, dim=-2).tril()
    start = since.exp()
    known = beta * torch.cat([v, k * start], dim=-1)
    known = torch.linalg.solve_triangular(beta * among, known, upper=False, unitriangular=True)
    fresh, stale = known.split([v.shape[-1], k.shape[-1]], dim=-1)
    q, kept, k = q * start, start[..., -1:, :].mT, k * (since[..., -1:, :] - since).exp()
    state = torch.zeros_like(k[:, :, 0].mT @ v[:, :, 0])
    out = torch.empty_like(v)
    for n in range(v.shape[2]):
        written = fresh[:, :, n] - stale[:, :, n] @ state
        out[:, :, n] = q[:, :, n] @ state + within[:, :, n] @ written
        state = kept[:, :, n] * state + k[:, :, n].mT @ written
    return out.flatten(2, 3)[:, :, :length]


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    a_log: torch.Tensor,
    dt_bias: torch.Tensor,
    cp_group: dist.ProcessGroup | None = None,
    tp_group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    me, world, ls = dist.get_rank(cp_group), dist.get_world_size(cp_group), q.shape[1]
    wide = torch.promote_types(q.dtype, torch.float32)

    def up_to_here(x: torch.Tensor) -> torch.Tensor:
        """[B, ls, H, D] to [B, H, T, D] without the tokens of later ranks."""
        parts = x.new_empty(world * x.shape[0], *x.shape[1:])
        dist.all_gather_into_tensor(parts, x.contiguous(), group=cp_group)
        seen = parts.view(world, *x.shape)[: me + 1]
        return seen.permute(1, 3, 0, 2, 4).flatten(2, 3).to(wide)

    queries, keys, values, gates, betas = map(up_to_here, (q, k, v, g, beta.unsqueeze(-1)))
    queries, keys = (x / x.norm(dim=-1, keepdim=True).clamp(min=1e-12) for x in (queries, keys))
    rate = a_log.to(wide).exp().view(-1, 1, 1)
    bias = dt_bias.to(wide).view(len(rate), 1, -1)
    decay = -5 * (rate * (gates + bias)).sigmoid()
    out = _delta_rule(queries * q.shape[-1] ** -0.5, keys, values, decay, betas.sigmoid())
    mine = out[:, :, me * ls :].transpose(1, 2).to(q.dtype).contiguous()
    if tp_group is not None:
        dist.all_reduce(mine, group=tp_group)
    return mine


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Of the last tokens: they need the earlier keys, values and gates, or the state they left."""
    entries = d.ls * d.heads * d.width
    earlier = (d.cp - 1) * d.ls * d.heads * (3 * d.width + 1) * itemsize
    state = 4 * d.heads * d.width**2
    return Cost(
        wire_bytes=min(earlier, state) + all_reduce_bytes(entries * itemsize, d.tp),
        flops=7 * entries * d.width,
        hbm_bytes=(5 * entries + d.ls * d.heads) * itemsize,
        exchanges=2 if d.tp > 1 else 1,
    )
