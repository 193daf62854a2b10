"""What the judge looks for at once when a batch ends."""

from __future__ import annotations

import torch

from evaluator.buffers.slab import Place
from evaluator.oracle.canaries import WATCHED, Canaries, watched_bytes

CPU = torch.device("cpu")
CANARIES = Canaries(secret=b"secret", rank=0)


def test_the_last_element_is_always_watched_and_some_that_change() -> None:
    place = Place(offset=256, shape=(100, 4), dtype=torch.bfloat16)
    drawn = [watched_bytes([place], CPU).tolist() for _ in range(20)]
    for own in drawn:
        assert len(own) == 2 * (1 + WATCHED)
        assert own[:2] == [256 + place.nbytes - 2, 256 + place.nbytes - 1]
        assert all(256 <= byte < 256 + place.nbytes for byte in own)
    assert len(set(map(tuple, drawn))) > 1


def test_every_output_is_watched_that_has_elements() -> None:
    places = [
        Place(offset=0, shape=(4,), dtype=torch.float32),
        Place(offset=256, shape=(), dtype=torch.uint8),
        Place(offset=768, shape=(0, 3), dtype=torch.float32),
    ]
    found = watched_bytes(places, CPU)
    assert len(found) == (4 + 1) * (1 + WATCHED)
    assert int(found.max()) == 256


def test_two_ranks_have_different_marks() -> None:
    other = Canaries(secret=b"secret", rank=1)
    assert other.poison(torch.float32) != CANARIES.poison(torch.float32)
    assert not torch.equal(other.guard(CPU), CANARIES.guard(CPU))
