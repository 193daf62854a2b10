"""A Ulysses attention layer, which attends between the heads of a token, as its source does."""

import torch
import torch.distributed as dist

from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=39,
    title="Ulysses attention layer, end to end",
    source="togethercomputer/xorl",
    domain="RL post-training",
    summary="Project, re-shard to heads, attend between a token's heads, re-shard back, project.",
    statement="hidden_states is [B, S, E], this rank's S tokens of B sequences. qkv = "
    "hidden_states @ w_qkv^T with w_qkv [3*H*D, E] gives H = num_heads queries, keys and values "
    "of width D for every token, in this order, as [B, S, 3, H, D]. The W ranks of group (None "
    "means the default process group) re-shard them by all-to-all: rank r gets, of the tokens of "
    "all ranks, the heads r*h to (r+1)*h-1, where h = H/W. For every token the h x h scores "
    "between its own queries and keys there are divided by sqrt(D); if causal, and unless there "
    "is only one token in the sequence, head i sees heads j <= i only; the softmax over j weighs "
    "the values. Heads return to the ranks of their tokens, are joined to [B, S, H*D] and "
    "multiplied by w_o^T, w_o being [E, H*D]. Return that, a contiguous tensor [B, S, E]. "
    "Everything has the inputs' dtype and may round to it after each step. Ranks have their own "
    "weights and agree on shapes and parameters. B, S and causal may differ from call to call; "
    "num_heads = 8, E = 512 and D = 64 do not.",
    outputs=("out",),
    also=("Sequence Parallel",),
    m_step=64,
    n_step=64,
    sizes=sizes(tiny=(256, 1024), large=(16384, 65536)),
    tolerances=tolerances(float32=1e-5, bfloat16=8e-2, float16=1e-2),
    tolerance_reason="against the dtype's own roundings, split products are off by up to 2.3e-6, "
    "0.042 and 0.0055 under `hardened`, inputs cut to the next smaller format by 0.018 in float32 "
    "and 0.23 in 16 bits",
    unscored_reason="the source attends between the heads of one token and not between tokens: "
    "each token's result depends on its own rank alone, so a kernel without any communication "
    "is right whatever the inputs",
    known_issues=(
        "A transpose is missing in the source; the result therefore depends on W as well.",
        "Weights are not scaled under `upstream`: scores of several hundred make the softmax pick "
        "one head, and rounding to the run dtype decides which.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """m/64 sequences of n/64 tokens over all ranks, at least one for each."""
    seq = max(1, max(1, n // 64) // world_size)
    return Dims(m=m, n=n, batch=max(1, m // 64), seq=seq, heads=8, width=512)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened projections undo the trial's scale: scores stay moderate."""
    fan_in, power = d.width**-0.5, ctx.spec.scale**2 + ctx.spec.shift**2
    return {
        "hidden_states": ctx.randn(d.batch, d.seq, d.width),
        "w_qkv": ctx.varied(ctx.randn(3 * d.width, d.width), spread=fan_in * power**-0.5),
        "w_o": ctx.varied(ctx.randn(d.width, d.width), spread=fan_in),
        "group": None,
        "num_heads": d.heads,
        "causal": ctx.choose(False, (False, True)),
    }


def _attend(qkv: torch.Tensor, causal: bool) -> torch.Tensor:
    """[..., 3, h, D] to [..., h, D], between the h heads of a token."""
    q, k, v = qkv.unbind(-3)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    context: torch.Tensor = scores.softmax(dim=-1) @ v
    return context


def _swap(parts: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    sent = parts.contiguous()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return received


def reference(
    hidden_states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    group: dist.ProcessGroup | None = None,
    num_heads: int = 8,
    causal: bool = False,
) -> torch.Tensor:
    world = dist.get_world_size(group)
    batch, seq, _ = hidden_states.shape
    qkv = (hidden_states @ w_qkv.T).view(batch, seq, 3, world, num_heads // world, -1)
    mine = _swap(qkv.movedim(3, 0), group)  # [source of the tokens, B, S, 3, h, D]
    heads = _attend(mine, causal and world * seq > 1)
    back = _swap(heads, group).movedim(0, 2)
    return back.reshape(batch, seq, -1) @ w_o.T


def oracle(
    hidden_states: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    group: dist.ProcessGroup | None = None,
    num_heads: int = 8,
    causal: bool = False,
) -> torch.Tensor:
    """In the dtype that the values fit into, because published scores make rounding decide."""
    given = (hidden_states, w_qkv, w_o)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        if all(torch.equal(t.to(dtype).to(t.dtype), t) for t in given):
            given = (hidden_states.to(dtype), w_qkv.to(dtype), w_o.to(dtype))
            break
    return reference(*given, group, num_heads, causal).to(hidden_states.dtype)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """Each token's result depends on its own rank alone: no exchange is needed."""
    chunk, heads = d.batch * d.seq * d.width, d.heads // world_size
    return Cost(
        wire_bytes=0,
        flops=8 * chunk * d.width + 4 * chunk * heads,
        hbm_bytes=(2 * chunk + 4 * d.width**2) * itemsize,
    )
