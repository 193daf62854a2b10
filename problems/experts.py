"""Draw what tells whether a mixture of experts is whole: crowded experts, and gates with tails."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from problems.context import RankContext

LEAD = 16.0  # above any other wish


def wishes(ctx: RankContext, tokens: int, experts: int, top_k: int) -> Tensor:
    """Return how much each token likes each expert, [tokens, experts], in the run dtype.

    In half of the trials some experts are more popular. Where a token chooses one, four of five
    choose the same: room for twice an even share is not enough, and what overflows is missed. Timed
    calls have no such crowd, as it would change their work.
    """
    popularity = ctx.choose(0.0, (0.0, 1.0)) * ctx.varied(torch.zeros(experts), shared=True)
    liking = ctx.varied(torch.zeros(tokens, experts)) + popularity
    crowded = ctx.integers(torch.zeros(1, dtype=torch.int64), 0, experts, shared=True)
    joins = ctx.integers(torch.zeros(tokens, 1, dtype=torch.int64), 0, 5) > 0
    if top_k > 1 or ctx.spec.timed:
        return liking
    return liking + LEAD * joins * (torch.arange(experts, device=ctx.device) == crowded)


def gate(ctx: RankContext, inside: int, outside: int, gains: Tensor) -> nn.Linear:
    """Draw a layer before a SiLU as `ctx.linear` does. Hardened, three of four units lie around -3,
    -4 or -5: a SiLU's tail is small there, and a rational function in place of it far off. The last
    unit is large, so that none can be left out.
    """
    layer = ctx.linear(inside, outside, gains)
    low = ctx.integers(torch.zeros(outside, dtype=torch.int64), 0, 4)
    down = low + 2 * low.clamp(max=1)
    down[-1] = ctx.pick(0, -2)
    layer.bias.data -= down
    return layer
