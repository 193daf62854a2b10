"""Cross-entropy per token, from logits that are sharded along the vocabulary."""

import torch
import torch.distributed as dist

from problems.collectives import all_reduce_bytes
from problems.context import RankContext
from problems.spec import Cost, Dims, Problem, sizes, tolerances

_Outputs = tuple[torch.Tensor, ...]

problem = Problem(
    number=73,
    title="Vocab-parallel cross-entropy loss",
    source="NVIDIA/Megatron-LM",
    domain="LLM training",
    summary="Cross-entropy of every token without gathering the logits.",
    statement="vocab_parallel_logits is [B, S, V/W]: rank r of the W ranks of group (None means "
    "the default process group) holds columns r*V/W to (r+1)*V/W-1 of every token's logits. "
    "target is [B, S] int64 of ids 0 to V-1, the same on every rank. Return log(sum over the "
    "whole vocabulary of exp(logit)) minus the target's logit for every token: [B, S] in the "
    "logits' dtype, the same on every rank. Logits may lie anywhere in that dtype's range, so "
    "large ones must not overflow; intermediate results may round to the dtype if each token's "
    "maximum is subtracted first. The call may overwrite vocab_parallel_logits with anything: "
    "they are fresh in every call and nobody reads them afterwards. target must stay as it is.",
    outputs=("loss",),
    mutates=("vocab_parallel_logits",),
    also=("Tensor Parallel",),
    sizes=sizes(tiny=(16, 2048), large=(1024, 262144)),
    tolerances=tolerances(float32=1e-5, bfloat16=1.2e-2, float16=1.5e-3, rms={"bfloat16": 0.13}),
    tolerance_reason="maximum-shifted logits, the sum of exponentials, its logarithm and the loss "
    "may each round to the run dtype, which in bfloat16 costs up to 0.0085; inputs cut to 3 bits "
    "of mantissa cost 0.2 or more. The rms of honest answers in bfloat16 is 0.09 at most, over "
    "wires of 8 bits, one collective alone included, 0.19 or more",
    known_issues=(
        "Upstream leaves the logits minus their maximum behind; a kernel need not.",
        "Upstream logits are small enough to need no stable softmax; hardened ones lie around "
        "a level of their own for every token, of up to a few hundred, and in half of the tokens "
        "one word of each rank outweighs all others. In a quarter of the tokens one word of all "
        "ranks does, and all other words together still count.",
    ),
)


def dims(m: int, n: int, world_size: int) -> Dims:
    """8 sequences of m tokens and n/2 words, which is PKB's fixed shape at m = n = 1024. Where n is
    odd, so is a rank's part of the words."""
    part = -(-n // (2 * world_size)) | n % 2
    return Dims(m=m, n=n, batch=8, seq=m, vocab=part * world_size)


def make_inputs(ctx: RankContext, d: Dims) -> dict[str, object]:
    """Hardened: a word of each rank, often an edge, outweighs all others of every second token. In
    a quarter of tokens one word of all does, and the others, each below e^-8 of it, count together.
    Three of four targets are likely words: losses are small, so that their sums' roundings show."""
    tokens = torch.arange(d.batch * d.seq).view(d.batch, d.seq)
    logits = ctx.randn(d.batch, d.seq, d.vocab // ctx.world_size)
    level = ctx.varied(torch.zeros(d.batch, d.seq, 1), spread=60.0, shared=True)
    published = (tokens * 13 + 7 + ctx.spec.trial) % d.vocab
    edges = torch.zeros_like(logits[0, 0])
    edges[[0, -1]] = 2.0
    luck = ctx.varied(logits) + edges
    best = luck == luck.amax(dim=-1, keepdim=True)
    loud = logits + (best & (level > 0)) * (6 + 6 * ctx.spec.scale + luck)
    lot = ctx.integers(torch.zeros(level.shape).long(), 0, 2 * ctx.world_size, shared=True)
    lead = (8.75 * (best & (lot == ctx.rank))).to(ctx.dtype)
    is_faint = (level <= 0) & (lot < ctx.world_size)
    hidden = torch.where(is_faint, logits / (12 * ctx.spec.scale) + lead, loud) + level
    target = ctx.integers(published, 0, d.vocab, shared=True)
    is_near = ctx.integers(torch.zeros(level.shape).long(), 0, 4, shared=True) > 0
    words = torch.arange(logits.shape[-1], device=logits.device) + ctx.rank * logits.shape[-1]
    rise = torch.where(is_faint, 8.0, 8 + 6 * ctx.spec.scale).to(ctx.dtype)
    hidden += rise * (is_near & (target.unsqueeze(-1) == words))
    return {
        "vocab_parallel_logits": ctx.pick(logits + level, hidden),
        "target": target,
        "group": None,
    }


def reference(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rank, words = dist.get_rank(group), vocab_parallel_logits.shape[-1]
    top = vocab_parallel_logits.amax(dim=-1)
    dist.all_reduce(top, op=dist.ReduceOp.MAX, group=group)
    shifted = vocab_parallel_logits.sub_(top.unsqueeze(-1))
    column = target - rank * words
    is_mine = (column >= 0) & (column < words)
    wanted = shifted.gather(-1, column.clamp(0, words - 1).unsqueeze(-1)).squeeze(-1)
    wanted = wanted.masked_fill(~is_mine, 0)
    dist.all_reduce(wanted, group=group)
    total = shifted.exp().sum(dim=-1)
    dist.all_reduce(total, group=group)
    return total.log() - wanted


def keys(
    vocab_parallel_logits: torch.Tensor,
    target: torch.Tensor,
    group: dist.ProcessGroup | None = None,
) -> _Outputs:
    return (target,)


def settle(got: _Outputs, truth: _Outputs, keys: _Outputs) -> _Outputs:
    """Whatever became of the logits is right."""
    return (*got[:-1], truth[-1])


def cost(d: Dims, world_size: int, itemsize: int) -> Cost:
    """One log-sum-exp per token and rank to where the target is, then the losses to all."""
    tokens, mine = d.batch * d.seq, d.vocab // world_size
    return Cost(
        wire_bytes=all_reduce_bytes(tokens * itemsize, world_size),
        flops=4 * tokens * mine,
        hbm_bytes=tokens * ((mine + 1) * itemsize + 8),
    )
