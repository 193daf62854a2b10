"""Draw tokens for attention whose small weights meet large values: none of them can be left out.

A quarter of tokens, never a sequence's first, are faint: their keys are so far from every query
that they weigh about a 256th of what others do, and their values are 64 times as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from problems.context import RankContext

FAINTER = 256
LOUD, QUIET = 16.0, 0.25  # times the values of faint tokens and of all others
FAINT, CALM, LOTS = 0, 1, 4


def lots(ctx: RankContext, *shape: int, shared: bool = False) -> Tensor:
    """Draw whether tokens are FAINT, CALM or neither. A calm one, as the first of a sequence should
    be, has no score far below others': a faint token would outweigh it."""
    return ctx.integers(torch.zeros(shape, dtype=torch.int64), 0, LOTS, shared=shared)


def depth(scale: float) -> float:
    """Return the value of queries, and negated of faint keys, in one dimension for this scale."""
    return float((math.log(FAINTER) / scale) ** 0.5)


def faint_keys(ctx: RankContext, shape: Sequence[int], scale: float) -> list[Tensor]:
    """Draw queries, keys and values, [B, S, H, D], of such tokens; those of rank 0 come first."""
    q, k, v = published = [ctx.randn(*shape) for _ in range(3)]
    lot = lots(ctx, *shape[:3], 1)
    lot[:, : int(ctx.rank == 0)] = CALM
    return ctx.pick(published, with_faint(q, k, v, lot, scale))


def with_faint(q: Tensor, k: Tensor, v: Tensor, lot: Tensor, scale: float) -> list[Tensor]:
    """Return queries, keys and values, [..., D], with their tokens made what `lot`, [..., 1], says
    of keys."""
    queries, keys = q.clone(), torch.where(lot <= CALM, k / 4, k)
    queries[..., -1:], keys[..., -1:] = depth(scale), (lot == FAINT) * -depth(scale)
    return [queries, keys, torch.where(lot == FAINT, LOUD * v, QUIET * v)]


def faint_layer(
    hidden: Tensor, w_qkv: Tensor, lot: Tensor, loud: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """Return hidden states, [..., E], and weights, [3, heads, dim, E], of such tokens.

    Values are made of the columns that are `loud`, [E], queries and keys of all others but the
    first two. The first gives every query its depth, the second every faint key.
    """
    level = torch.where(lot == FAINT, LOUD, QUIET).to(hidden)
    hidden = torch.where(loud, level * hidden, torch.where(lot <= CALM, hidden / 4, hidden))
    hidden[..., :1], hidden[..., 1:2] = depth(scale), (lot == FAINT) * -depth(scale)
    ours = torch.stack([~loud, ~loud, loud]).view(3, 1, 1, -1)
    w_qkv = w_qkv * ours
    w_qkv[..., :2] = 0
    w_qkv[:2, :, -1] = 0
    w_qkv[0, :, -1, 0] = w_qkv[1, :, -1, 1] = 1
    return hidden, w_qkv
