"""Masks that clash, or fail to, by one pixel."""

from __future__ import annotations

import pytest
import torch

from problems.mask_chains import LINKS, chained_masks, logits
from tests.problems.test_context import hardened


@pytest.mark.parametrize("threshold", [0.7071, 0.4472, 0.5])
@pytest.mark.parametrize("side", [8, 11, 16, 64, 256])
def test_neighbours_in_a_chain_meet_the_threshold_or_miss_it_by_a_pixel(
    side: int, threshold: float
) -> None:
    missed = torch.tensor([[False, True], [True, False], [False, False]])
    places = torch.arange(missed.numel() // 2 * LINKS)
    masks = chained_masks(hardened(), side, places, threshold, missed)
    flat = masks.flatten(1).double()
    common, area = flat @ flat.T, flat.sum(dim=1)
    joint = area.view(-1, 1) + area - common
    for chain, misses in enumerate(missed.tolist()):
        first, second, third = range(LINKS * chain, LINKS * (chain + 1))
        for (one, other), miss in zip([(first, second), (second, third)], misses, strict=True):
            shared, whole = common[one, other], joint[one, other]
            assert (shared / whole < threshold) == miss
            nearest = (shared + 1) / (whole - 1) if miss else (shared - 1) / (whole + 1)
            assert (nearest >= threshold) == miss
        assert common[first, third] / joint[first, third] < threshold
        assert area[first] != area[second]


def test_a_half_is_met_by_powers_of_two() -> None:
    masks = chained_masks(hardened(), 9, torch.arange(2), 0.5, torch.tensor([[False, False]]))
    common, joint = (masks[0] & masks[1]).sum(), (masks[0] | masks[1]).sum()
    assert (common.item(), joint.item()) == (16, 32)


def test_logits_are_positive_in_masks_alone_and_some_are_zero_or_small() -> None:
    masks = torch.rand(4, 32, 32) < 0.5
    values = logits(hardened(), masks, torch.randn(4, 32, 32))
    assert torch.equal(values > 0, masks)
    assert (values == 0).any()
    assert ((values > 0) & (values < 1e-3)).any()
