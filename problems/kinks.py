"""Place the kinks of ReLU units where rounding switches none of them on or off."""

from __future__ import annotations

import torch
from torch import Tensor

EDGE = 0.1  # of the root mean square of a unit's sums, which rounding errors are relative to


def clear_biases(sums: Tensor) -> Tensor:
    """Return a bias for each unit, [units], of its weighted sums by row, [rows, units], in float32.

    A kink lies in the middle of the widest gap between rows. Where thousands of rows leave a unit
    none as wide as EDGE, it lies below them all, half of that from the least.
    """
    edge = EDGE * sums.square().mean(dim=0, keepdim=True).sqrt()
    ordered = sums.sort(dim=0).values
    ordered = torch.cat([ordered[:1] - edge, ordered])
    gap = ordered.diff(dim=0).argmax(dim=0, keepdim=True)
    return (ordered.gather(0, gap) + ordered.gather(0, gap + 1)).squeeze(0) / -2
