"""Each rank's secret patterns."""

from __future__ import annotations

import pytest
import torch

from evaluator.oracle.canaries import Canaries

CPU = torch.device("cpu")
CANARIES = Canaries(secret=b"secret", rank=0)


def test_two_ranks_have_different_marks() -> None:
    other = Canaries(secret=b"secret", rank=1)
    assert other.poison(torch.float32) != CANARIES.poison(torch.float32)
    assert not torch.equal(other.guard(CPU), CANARIES.guard(CPU))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_poison_of_a_float_is_nan_with_a_secret_payload(dtype: torch.dtype) -> None:
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    poison = torch.tensor([CANARIES.poison(dtype)], dtype=bits)
    assert poison.view(dtype).isnan().all()
    assert (poison != torch.tensor([float("nan")], dtype=dtype).view(bits)).all()


def test_an_integer_of_one_byte_may_equal_the_poison() -> None:
    poisoned = torch.full((4,), CANARIES.poison(torch.uint8), dtype=torch.uint8)
    assert CANARIES.unwritten(poisoned) == 0
    assert CANARIES.unwritten(poisoned.fill_(CANARIES.poison(torch.bool)).view(torch.bool)) == 4


def test_poison_of_a_bool_is_no_bool() -> None:
    assert CANARIES.poison(torch.bool) > 1
