"""Ideal bytes of collectives, against counting who needs what."""

from __future__ import annotations

import pytest

from problems import collectives

WORLDS = [2, 3, 4, 8]
FULL = 24.0  # divisible by every world size


@pytest.mark.parametrize("w", WORLDS)
def test_a_ring_all_reduce_is_a_reduce_scatter_and_an_all_gather(w: int) -> None:
    both = collectives.reduce_scatter_bytes(FULL, w) + collectives.all_gather_bytes(FULL / w, w)
    assert collectives.all_reduce_bytes(FULL, w) == pytest.approx(both)


@pytest.mark.parametrize("w", WORLDS)
def test_a_rank_receives_every_part_but_its_own(w: int) -> None:
    parts_from_others = sum(FULL / w for source in range(w) if source != 0)
    assert collectives.all_to_all_bytes(FULL, w) == pytest.approx(parts_from_others)
    assert collectives.reduce_scatter_bytes(FULL, w) == pytest.approx(parts_from_others)
    assert collectives.all_gather_bytes(FULL / w, w) == pytest.approx(parts_from_others)
    assert collectives.gather_bytes(FULL / w, w) == pytest.approx(parts_from_others)
    assert collectives.scatter_bytes(FULL / w, w) == pytest.approx(parts_from_others)


@pytest.mark.parametrize("w", WORLDS)
def test_nothing_moves_alone(w: int) -> None:
    names = [name for name in vars(collectives) if name.endswith("_bytes")]
    assert len(names) == 6
    for name in names:
        count = getattr(collectives, name)
        assert count(FULL, 1) == 0
        assert count(FULL, w) > 0
