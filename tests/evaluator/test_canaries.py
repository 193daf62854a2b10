"""What the judge looks for at once when a batch ends."""

from __future__ import annotations

import pytest
import torch

from evaluator.buffers.slab import Place
from evaluator.oracle.canaries import WATCHED, Canaries, watched_elements

CPU = torch.device("cpu")
CANARIES = Canaries(secret=b"secret", rank=0)


def _cleared(places: list[Place]) -> torch.Tensor:
    slab = torch.zeros(1 << 12, dtype=torch.uint8)
    for place in places:
        CANARIES.fill(slab[place.offset : place.offset + place.nbytes], place.dtype)
    return slab


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_an_output_that_nobody_wrote_is_seen(dtype: torch.dtype) -> None:
    places = [Place(offset=256, shape=(5, 4), dtype=dtype)]
    (found,) = watched_elements(CANARIES, places, CPU)
    slab = _cleared(places)
    assert int(found.unwritten(slab)) == 1 + WATCHED
    slab[256 : 256 + places[0].nbytes] = 0
    assert int(found.unwritten(slab)) == 0


def test_the_last_element_is_always_watched() -> None:
    places = [Place(offset=0, shape=(100,), dtype=torch.float32)]
    slab = _cleared(places)
    slab[: 99 * 4] = 0
    for _ in range(20):
        assert int(watched_elements(CANARIES, places, CPU)[0].unwritten(slab)) >= 1


def test_dtypes_are_watched_apart_and_what_may_be_right_is_not() -> None:
    places = [
        Place(offset=0, shape=(4,), dtype=torch.float32),
        Place(offset=256, shape=(4,), dtype=torch.bfloat16),
        Place(offset=512, shape=(4,), dtype=torch.uint8),
        Place(offset=768, shape=(0, 3), dtype=torch.float32),
    ]
    assert [own.poison.numel() for own in watched_elements(CANARIES, places, CPU)] == [4, 2]


def test_two_ranks_have_different_marks() -> None:
    other = Canaries(secret=b"secret", rank=1)
    assert other.poison(torch.float32) != CANARIES.poison(torch.float32)
    assert not torch.equal(other.guard(CPU), CANARIES.guard(CPU))
