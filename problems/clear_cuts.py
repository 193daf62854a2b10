"""Make logits for top-k/top-p filters: rounding cannot move a cut, and no rank can tell one alone.

The best of a token descend in random steps, spread over the ranks. Of many such ladders that one is
taken whose running sums stay farthest from 1 - top_p.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from problems.context import RankContext

RUNGS, LADDERS = 16, 32
LEAST_STEP, STEP_SPREAD = 0.2, 0.5


def clear_cuts(
    ctx: RankContext, tokens: int, vocab: int, top_k: int, top_p: float
) -> tuple[Tensor, Tensor]:
    """Return logits [tokens, vocab], the same on every rank, and the ids of each token's best, best
    first. Where nothing is cut by top_p, all others together count as much as a good one."""
    noise = ctx.varied(torch.zeros(tokens, vocab), shared=True)
    level = ctx.varied(torch.zeros(tokens, 1), spread=2.0, shared=True)
    drawn = ctx.varied(torch.zeros(LADDERS, tokens, RUNGS - 1), shared=True)
    steps = torch.nn.functional.pad(LEAST_STEP + STEP_SPREAD * drawn.abs(), (1, 0))
    ladders = level - steps.cumsum(dim=-1)
    ladder = ladders.gather(0, _clearest(ladders, top_k, top_p).expand(1, tokens, RUNGS))[0]
    best = noise.topk(RUNGS, dim=-1).indices
    depth = 24.0 if top_p < 1 else 2 + math.log(vocab)
    return (level - depth + noise / 2).scatter(1, best, ladder), best


def _clearest(ladders: Tensor, top_k: int, top_p: float) -> Tensor:
    """Return for each token which ladder's running sums are farthest, in ratio, from 1 - top_p."""
    if top_p >= 1:
        return torch.zeros_like(ladders[:1, :, :1], dtype=torch.int64)
    kept = ladders[..., : top_k or RUNGS].to(torch.float32)
    sums = kept.softmax(dim=-1).flip(-1).cumsum(dim=-1)
    distance = (sums / (1 - top_p)).log().abs().amin(dim=-1, keepdim=True)
    return distance.argmax(dim=0, keepdim=True)
