"""Draw what shows whether a mixture of experts is whole: crowded and rare experts, gates' tails."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from problems.context import RankContext

LEAD = 16.0  # above any other wish
FEW = 3 / 16  # share of an expert's features that are 16 times as large
MASKED = 8  # of so many tokens one counts, under a mask


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


def answer_sizes(ctx: RankContext, features: int) -> Tensor:
    """Return how large each feature of all experts' answers is: ones, or, hardened, few that are 16
    times as large as others. One scale for a block of 8-bit answers then loses the small ones."""
    order = ctx.sample(torch.ones(features, dtype=torch.int64), features, shared=True)
    return torch.where(order < FEW * features, ctx.pick(1.0, 8.0), ctx.pick(1.0, 0.5)).to(ctx.dtype)


def answer_layer(ctx: RankContext, inside: int, sizes: Tensor) -> nn.Linear:
    """Draw a layer as `ctx.linear` does, whose outputs have these sizes."""
    layer = ctx.linear(inside, len(sizes))
    layer.weight.data *= sizes.view(-1, 1)
    layer.bias.data *= sizes
    return layer


def router_logits(ctx: RankContext, experts: int, place: Tensor) -> Tensor:
    """Return a router's logits, [tokens, experts], of tokens with these places in a secret order.

    Hardened logits spread by 2 at most: float16 holds no probability below 6e-8, and experts that
    all have none tie. A token's logits lie so far apart that rounding makes no ties,
    but the first two so close, around 6, that three bits of mantissa make some. Tokens take their
    first choice in turns, in which every expert has one to four, so that none is too rare to
    count. Masked tokens crowd at the first expert, and the last token takes the last expert, which
    is rare.
    """
    logits = ctx.randn(len(place), experts)
    popularity = ctx.filled(0.0, 1, experts)
    counts = (place % MASKED == 0).view(-1, 1)
    taste = ctx.varied(torch.zeros(1, experts)) * torch.where(counts, 1, -1)
    hidden = (logits + popularity) / max(1.0, ctx.spec.scale / 2) + taste
    turns = [ctx.integers(torch.ones(experts, dtype=torch.int64), 1, 5) for _ in range(2)]
    turns[0][-1], turns[1][0] = 1, experts
    orders = [torch.repeat_interleave(turn) for turn in turns]
    choices = [order[place // MASKED % len(order)].view(-1, 1) for order in orders]
    first = torch.where(counts, choices[0], choices[1])
    lead = torch.full_like(hidden[:, :1], 0.25)
    first[-1], lead[-1] = experts - 1, 5
    hidden += 6 - hidden.amax(dim=1, keepdim=True)
    hidden.scatter_(1, first, 6 + lead)
    apart = hidden + (0.06 * hidden.argsort().argsort()).to(ctx.dtype)
    return ctx.pick(logits + popularity, apart)
