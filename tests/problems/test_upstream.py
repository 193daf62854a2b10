"""The `upstream` profile hands over what PKB does."""

from __future__ import annotations

import inspect

import pytest
import torch

import problems
from problems.running.calls import Inputs, drawn
from problems.running.ranks import RankPool
from problems.trials import TrialSpec
from tests.problems.rank_tasks import told_at_ties

SPEC = TrialSpec(trial=2, m=64, n=1024, note="test")


def inputs(number: int, profile: str, *, rank: int, dtype: torch.dtype) -> Inputs:
    module = problems.load(problems.find(str(number)))
    return drawn(module, SPEC, rank, 2, profile=profile, secret=b"s", dtype=dtype)[1]


@pytest.mark.parametrize(
    ("number", "left_out"),
    [
        (3, ["src"]),
        (4, []),  # PKB passes dst
        (5, ["src"]),
        (6, ["dst"]),
        (70, ["weights", "stride_per_key", "stagger"]),
    ],
)
def test_arguments_that_pkb_leaves_to_their_defaults_are_left_out(
    number: int, left_out: list[str]
) -> None:
    module = problems.load(problems.find(str(number)))
    expected = list(inspect.signature(module.reference).parameters)
    for rank in range(2):
        given = inputs(number, "upstream", rank=rank, dtype=torch.float32)
        assert list(given) == expected[: len(expected) - len(left_out)]
        assert expected[len(given) :] == left_out
        assert list(inputs(number, "hardened", rank=rank, dtype=torch.float32)) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_masks_are_rounded_after_each_step_as_pkb_does(dtype: torch.dtype) -> None:
    rank, count, side = 1, 1 + (1 + SPEC.trial) % 3, SPEC.m // 4
    masks = inputs(81, "upstream", rank=rank, dtype=dtype)["low_res_masks_local"]
    generator = torch.Generator().manual_seed(42 + 81000 + rank + 1000003 * SPEC.trial)
    expected = torch.randn(count, side, side, generator=generator, dtype=dtype)
    line = torch.arange(side)
    for place, mask in enumerate(expected):
        mask[(line.view(-1, 1) + line + place + rank) % 5 == 0] += 4
    assert isinstance(masks, torch.Tensor)
    assert torch.equal(masks, expected - 1)


@pytest.mark.parametrize(("number", "name"), [(26, "expert_mask"), (57, "out")])
@pytest.mark.parametrize("profile", ["upstream", "hardened"])
def test_what_was_transposed_is_contiguous(number: int, name: str, profile: str) -> None:
    given = inputs(number, profile, rank=1, dtype=torch.bfloat16)[name]
    assert isinstance(given, torch.Tensor)
    assert given.is_contiguous()


# Of 128 largest elements five are such that bfloat16 has a number at a tie that a product decides
# in another way than a quotient.
IN_FP8, IN_INT8 = (4.8125, 0.98828125), (4.46875, 2.234375)


@pytest.mark.parametrize(
    ("number", "divided", "multiplied", "values"),
    [
        (19, "/= scale.new_full((), 448)", "*= scale.new_full((), 1 / 448)", IN_FP8),
        (44, "/ largest.new_full((), 127)", "* largest.new_full((), 1 / 127)", IN_INT8),
        (52, "/ largest.new_full((), 448)", "* largest.new_full((), 1 / 448)", IN_FP8),
        (53, "/ largest.new_full((), 448)", "* largest.new_full((), 1 / 448)", IN_FP8),
    ],
)
def test_a_product_may_decide_a_tie_as_well_as_a_quotient(
    two_ranks: RankPool, number: int, divided: str, multiplied: str, values: tuple[float, float]
) -> None:
    for settled, compared in two_ranks.run(told_at_ties, number, [divided, multiplied], values):
        assert settled is None
        assert compared is not None
