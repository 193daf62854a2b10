"""Draw importance ratios of tokens whose extremes no rank can guess from its own tokens."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from problems.context import RankContext

SIDES = tuple(product((1, -1, 0), (0, 1)))


def log_ratios(ctx: RankContext, tokens: int) -> tuple[Tensor, Tensor]:
    """Return which tokens count, and all tokens' log-ratios; for hardened inputs only.

    Log-ratios lie all above 0, all below, or around 0 with some below a clamp at -20. A rank's last
    token has its largest. In the first two cases a hidden token has its least, and the largest and
    the least of all ranks lie on different ranks. Those of tokens that do not count are decoys.
    """
    side, odd = ctx.choose(SIDES[0], SIDES)
    dice = ctx.integers(torch.zeros(tokens, dtype=torch.int64), 0, 8)
    lowest = 2 * ctx.integers(torch.zeros(1, dtype=torch.int64), 0, (tokens - 1) // 2) + odd
    dice[lowest], dice[-1] = 3, 3
    counts = dice > ctx.rank % 3
    wave = (ctx.varied(torch.zeros(tokens), spread=0.7) + ctx.varied(torch.zeros(1))).sin()
    order = ctx.sample(torch.arange(ctx.world_size), ctx.world_size, shared=True)
    level = 1.5 * side + 0.4 * order[ctx.rank].to(ctx.dtype) / max(1, ctx.world_size - 1)
    ratios = level + 0.2 * wave
    ratios[lowest], ratios[-1] = level - 0.7, level + 0.5
    if side == 0:
        ratios = 2 * wave - 30 * (dice == 7)
        ratios[-1] = 2.4
    decoys = 6 * ctx.varied(torch.zeros(tokens))
    return counts, torch.where(counts, ratios, decoys)
