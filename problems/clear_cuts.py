"""Make logits for top-k/top-p filters: rounding cannot move a cut, and no rank can tell one alone.

The best of a token descend in random steps, spread over the ranks. Of many such ladders that one is
taken whose running sums stay farthest from 1 - top_p. Where top_k cuts, steps are small: it cuts
away over 15 % of the sum, so that top-p would keep more if it came first, and the next logit is the
nearer the finer the dtype is. Some others lie so low that no histogram tells the two apart.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from problems.context import RankContext

RUNGS, LADDERS = 20, 64
STEP, SMALL_STEP = (0.2, 0.5), (0.13, 0.05)  # the least, and the deviation of what is added
APART = 16  # roundings that two logits below 32 differ by, to stay apart in every dtype
LOW = 256.0


def chosen_filter(ctx: RankContext, vocab: int) -> tuple[int | None, float]:
    """Return top_k and top_p: both, one alone, neither, or more than there are."""
    options = ((10, 0.9), (6, 1.0), (8, 0.82), (None, 0.75), (0, 1.0), (vocab + 1, 0.9))
    return ctx.choose(options[0], options)


def clear_cuts(
    ctx: RankContext, tokens: int, vocab: int, top_k: int | None, top_p: float
) -> tuple[Tensor, Tensor]:
    """Return logits [tokens, vocab], the same on every rank, and the ids of each token's best, best
    first. Where nothing is cut by top_p alone, all others together count as much as a good one."""
    noise, level, drawn = (
        ctx.varied(torch.zeros(shape), spread=spread, shared=True).float()
        for shape, spread in (
            ((tokens, vocab), 1.0),
            ((tokens, 1), 2.0),
            ((LADDERS, tokens, RUNGS - 1), 1.0),
        )
    )
    k = top_k or RUNGS
    cuts = 0 < k < RUNGS
    least, spread = SMALL_STEP if cuts else STEP
    steps = least + spread * drawn.abs()
    if cuts:
        near = APART * torch.finfo(ctx.dtype).eps / least
        power = ctx.integers(torch.zeros(LADDERS, tokens, dtype=torch.int64), 0, 9, shared=True)
        steps[..., k - 1] = least * near ** (power / 8)
    steps = torch.nn.functional.pad(steps, (1, 0))
    ladders = (level - steps.cumsum(dim=-1)).to(ctx.dtype)
    ladder = ladders.gather(0, _clearest(ladders[..., :k], top_p).expand(1, tokens, RUNGS))[0]
    best = noise.topk(RUNGS, dim=-1).indices
    depth = math.log(vocab) + 2.0 * (not cuts) if cuts or top_p >= 1 else 24.0
    others = level - depth + noise / 2 - LOW * (noise < -1)
    return others.to(ctx.dtype).scatter(1, best, ladder), best


def _clearest(ladders: Tensor, top_p: float) -> Tensor:
    """Return for each token which ladder's running sums are farthest, in ratio, from 1 - top_p."""
    if top_p >= 1:
        return torch.zeros_like(ladders[:1, :, :1], dtype=torch.int64)
    sums = ladders.to(torch.float32).softmax(dim=-1).flip(-1).cumsum(dim=-1)
    distance = (sums / (1 - top_p)).log().abs().amin(dim=-1, keepdim=True)
    return distance.argmax(dim=0, keepdim=True)
