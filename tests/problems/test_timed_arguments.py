"""What is said of timed calls is what timed calls are given."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import problems
from problems.catalogue import stored
from problems.prompt import timed_arguments as told
from problems.running.calls import drawn
from problems.spec import GroupRef
from problems.timed_arguments import timed_arguments, words
from problems.trials import timed_trial
from problems.values import linear

EXPORTED = {one["slug"]: one for one in stored()["problems"]}
QUICK = ("scatter", "moe_all2all_primitive", "torchrec_kjt_all2all", "gemv_decode")


@pytest.mark.parametrize("slug", QUICK)
def test_what_is_exported_is_todays(slug: str) -> None:
    module = problems.load(problems.find(slug))
    assert EXPORTED[slug]["timed_arguments"] == timed_arguments(module)


@pytest.mark.parametrize("name", problems.names())
def test_every_tensor_of_a_timed_call_is_as_it_is_told(name: str) -> None:
    module = problems.load(name)
    ranks = module.problem.world_sizes[0]
    spec = timed_trial(module.problem, "tiny", 0, b"another secret")
    _, given = drawn(module, spec, 0, ranks, secret=b"another secret", dtype=torch.bfloat16)
    known = told(EXPORTED[module.slug], ranks, "bfloat16", "tiny")
    assert list(known) == list(given)
    for argument, value in given.items():
        if isinstance(value, torch.Tensor):
            dtype = str(value.dtype).removeprefix("torch.")
            assert any(_fits(value, phrase) for phrase in known[argument].split(" or " + dtype))


def _fits(value: torch.Tensor, phrase: str) -> bool:
    """Return whether lengths stand as they are, or between those of a range."""
    if "[" not in phrase:
        return False
    shape = phrase[phrase.index("[") + 1 : phrase.index("]")]
    parts = shape.split(", ") if shape else []
    return len(parts) == value.dim() and all(map(_holds, parts, value.shape))


def _holds(part: str, length: int) -> bool:
    if " to " in part:  # other calls may go a little beyond those that were drawn
        low, high = map(int, part.split(" to "))
        return low * 0.5 <= length <= high * 1.5
    return " or " in part or int(part) == length


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([torch.zeros(2, 3).half()] * 2, "{dtype} [2, 3]"),
        ([torch.zeros(2, 3), torch.zeros(5, 3)], "float32 [2 or 5, 3]"),
        ([torch.zeros(n, dtype=torch.int64) for n in range(1, 8)], "int64 [1 to 7]"),
        ([torch.zeros(()), None], "float32 [] or None"),
        ([True, False, True], "True or False"),
        ([0.25, 0.5], "0.25 or 0.5"),
        ([1, 2, 3, 4, 5], "1 to 5"),
        ([GroupRef(axis="world"), None], "all ranks or None"),
        ([GroupRef(axis="tp")], "the group tp"),
        ([[1, 2], [1, 2]], "[1, 2]"),
        ([[1, 2], [3]], "list of 1 or 2: 1 or 2 or 3"),
        ([linear(torch.zeros(3, 4).half(), None)], "a Linear of {dtype}, 4 to 3 features"),
    ],
)
def test_values_in_words(values: list[Any], said: str) -> None:
    assert words(values) == said
