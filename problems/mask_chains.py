"""Make masks whose overlap is at a threshold to a pixel: no sample of them tells which clash.

Masks form chains of three. Each overlaps the next one in a chain as much as the threshold asks
for, or in one pixel less; the first and the third hardly overlap. Which pixels a mask has is
random, so columns or rows left out turn about every second pair the other way round.
"""

from __future__ import annotations

import torch
from torch import Tensor

from problems.context import RankContext

LINKS = 3
SMALL = 2.0**-10  # of a logit that decides as much as a large one


def chained_masks(
    ctx: RankContext, side: int, places: Tensor, threshold: float, missed: Tensor
) -> Tensor:
    """Return masks [places, side, side], bool, of this rank's places in the chains, 0 to
    3 * len(missed) - 1; `missed`, [chains, 2], is True where a mask misses the next one.

    Areas alternate around 3/4 of a power of two, so a threshold of 1/2 is met by a quotient of
    powers of two, which every division gets exactly.
    """
    power = 2 ** max(2, (side * side).bit_length() - 2)
    area, apart = 3 * power // 4, power // 16
    length = area + apart * (1 - 2 * (torch.arange(LINKS, device=ctx.device) % 2))
    enough = -(-2 * area * threshold // (1 + threshold))  # common pixels of two that clash
    common = enough - missed.long()
    start = torch.nn.functional.pad((length[:-1] - common).cumsum(dim=1).long(), (1, 0))
    pixels = torch.zeros(len(missed), side * side, dtype=torch.int64)
    order = ctx.integers(pixels, 0, 1 << 62, shared=True).argsort(dim=1).argsort(dim=1)
    chain, link = places // LINKS, places % LINKS
    begin, mine = start[chain, link].unsqueeze(1), order[chain]
    inside: Tensor = (mine >= begin) & (mine < begin + length[link].unsqueeze(1))
    return inside.view(-1, side, side)


def logits(ctx: RankContext, masks: Tensor, drawn: Tensor) -> Tensor:
    """Return logits of these masks and the sizes of `drawn`, a quarter of them small; outside a
    mask a quarter is zero, which is not in it."""
    lot = ctx.integers(torch.zeros(masks.shape, dtype=torch.int64), 0, 4)
    size = drawn.abs() * torch.where(lot == 0, SMALL, 1.0).to(drawn.dtype)
    return torch.where(masks, size, torch.where(lot == 1, torch.zeros_like(size), -size))
