"""Log-probabilities of target tokens after top-k and top-p filtering, vocabulary sharded."""

import torch
import torch.distributed as dist

from problems.clear_cuts import chosen_filter, clear_cuts
from problems.collectives import all_to_all_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

problem = Problem(
    number=82,
    title="Vocab-parallel log-probabilities under top-k/top-p filtering",
    source="NVIDIA-NeMo/RL",
    domain="RL post-training",
    summary="Filter full rows of logits, then take each target's log-probability.",
    statement="vocab_parallel_logits is [B, S, V/W]: rank r of the W ranks of tp_group (None "
    "means the default process group) holds columns r*V/W to (r+1)*V/W-1 of every token's "
    "logits. For each token: if top_k is positive, keep the logits not below the top_k-th "
    "largest (top_k is capped at V); None or <= 0 keeps all. Then, if top_p < 1, take the "
    "softmax of what is left, sum it up from the smallest entry, and keep entries whose "
    "running sum, themselves included, is > 1 - top_p, and the largest in any case. Return the "
    "log-softmax over the kept logits, taken in float32 or better, at the token's target id, "
    "-inf if it was not kept: a float32 tensor [B, S], the same on every rank. target is [B, "
    "S] int64 of global ids, the same on every rank. Raise ValueError unless W divides B*S. "
    "top_k and top_p may differ from call to call.",
    outputs=("log_probs",),
    also=("Tensor Parallel",),
    sizes=sizes(
        tiny=(1024, 256),
        large=(16384, 128000),
        more={f"seq-{s}": (s, 128000) for s in (1024, 2048, 4096, 8192)},
    ),
    tolerances=tolerances(float32=1e-5, bfloat16=1e-4, float16=1e-4),
    tolerance_reason="the last step is float32 in every run dtype; hardened logits keep the "
    "top-p cut 15 % away from every running sum, so rounding decides nothing",
    known_issues=(
        "Upstream adds 8 to each target's logit: most answers are 0, and zeros nearly pass.",
        "Under `upstream` bfloat16 rounding of the running sum decides borderline entries.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """V = n/4, B = m/512 and S = m/128, as PKB fixes them at m = n = 1024. Larger vocabularies come
    with one sequence of m tokens: V = 32000 is the published plot over sequence lengths."""
    seq, batch = (m, 1) if n > 1024 else (max(world_size, m // 128), max(1, m // 512))
    vocab = -(-n // (4 * world_size)) * world_size
    return Dims(m=m, n=n, batch=batch, seq=-(-seq // world_size) * world_size, vocab=vocab)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    tokens, mine = d.batch * d.seq, d.vocab // ctx.world_size
    columns = slice(ctx.rank * mine, (ctx.rank + 1) * mine)
    plain = ctx.randn(tokens, mine)
    top_k, top_p = chosen_filter(ctx, d.vocab)
    rows, best = clear_cuts(ctx, tokens, d.vocab, top_k, top_p)
    ids = (torch.arange(tokens).view(-1, 1) * 17 + 3 + ctx.spec.trial) % d.vocab
    place = ctx.integers(ids.clamp(max=15), 0, 10, shared=True)
    target = ctx.pick(ids.to(ctx.device), best.gather(1, place))
    bonus = 8.0 * (target == torch.arange(d.vocab, device=ctx.device))[:, columns]
    logits = ctx.pick(plain + bonus.to(ctx.dtype), rows[:, columns])
    return {
        "vocab_parallel_logits": logits.reshape(d.batch, d.seq, mine),
        "target": target.view(d.batch, d.seq),
        "tp_group": None,
        "top_k": top_k,
        "top_p": top_p,
    }


def reference(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    tp_group: dist.ProcessGroup | None = None,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> torch.Tensor:
    rank, world = dist.get_rank(tp_group), dist.get_world_size(tp_group)
    tokens = target.numel()
    if tokens % world:
        raise ValueError(f"{tokens} tokens cannot be dealt to {world} ranks")
    sent = vocab_parallel_logits.reshape(tokens, -1).contiguous()
    parts = torch.empty_like(sent)
    dist.all_to_all_single(parts, sent, group=tp_group)
    rows = parts.view(world, tokens // world, -1).transpose(0, 1).reshape(tokens // world, -1)
    values, columns = rows.sort(dim=-1)
    if top_k is not None and top_k > 0:
        kth = values[:, -min(top_k, values.shape[1])].unsqueeze(1)
        values = values.masked_fill(values < kth, float("-inf"))
    if top_p < 1:
        dropped = values.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        dropped[:, -1] = False
        values = values.masked_fill(dropped, float("-inf"))
    kept = torch.empty_like(rows).scatter_(1, columns, values)
    wide = torch.promote_types(kept.dtype, torch.float32)
    wanted = target.view(world, -1, 1)[rank]
    mine = kept.log_softmax(dim=-1, dtype=wide).gather(1, wanted).flatten()
    log_probs = mine.new_empty(tokens)
    dist.all_gather_into_tensor(log_probs, mine, group=tp_group)
    return log_probs.view(target.shape)


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    tokens, mine = d.batch * d.seq, d.vocab // world_size
    return Cost(
        wire_bytes=all_to_all_bytes(tokens * (min(10, mine) * itemsize + 4), world_size),
        flops=tokens * mine * 10,
        hbm_bytes=tokens * (mine * itemsize + 12),
        exchanges=2,
    )
