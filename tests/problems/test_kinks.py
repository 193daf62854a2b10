"""Where the kinks of units lie."""

from __future__ import annotations

import torch

from problems.kinks import EDGE, clear_biases


def test_a_kink_lies_in_the_middle_of_the_widest_gap() -> None:
    sums = torch.tensor([[3.0, 0.0], [-1.0, 5.0], [0.0, 1.0]])
    assert clear_biases(sums).tolist() == [-1.5, -3.0]


def test_no_row_is_near_a_kink_however_many_there_are() -> None:
    sums = torch.randn(1 << 13, 256, generator=torch.Generator().manual_seed(1))
    for mean in (0, 10):  # rounding is relative to the sums, wherever they lie
        shifted = sums + mean
        nearest = (shifted + clear_biases(shifted)).abs().amin(dim=0)
        assert bool((nearest > 0.49 * EDGE * shifted.square().mean(dim=0).sqrt()).all())
    assert (sums + clear_biases(sums) > 0).all(dim=0).any()  # some units have no gap so wide
