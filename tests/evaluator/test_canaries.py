"""Each rank's secret patterns."""

from __future__ import annotations

import torch

from evaluator.oracle.canaries import Canaries

CPU = torch.device("cpu")
CANARIES = Canaries(secret=b"secret", rank=0)


def test_two_ranks_have_different_marks() -> None:
    other = Canaries(secret=b"secret", rank=1)
    assert other.poison(torch.float32) != CANARIES.poison(torch.float32)
    assert not torch.equal(other.guard(CPU), CANARIES.guard(CPU))
