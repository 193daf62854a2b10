"""Wrong kernels that are declared as edits of a reference, and those that fail on some ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

import problems
from problems.audit.answers import COARSE, HONEST, WRONG
from problems.audit.mutants import declared, edited, mutants_fit_the_reference
from problems.audit.partial_answers import PARTIAL
from problems.audit.screen import screen
from problems.running.ranks import RankPool
from tests.problems.rank_tasks import raise_on_last_rank

T = TypeVar("T")

NAME = "fsdp_zero.clip_grad_norm_no_ep"


def test_every_mutant_is_of_a_problem_and_has_a_name_of_its_own() -> None:
    assert set(declared()) <= {problems.load(name).slug for name in problems.names()}
    taken = {*WRONG, *COARSE, *PARTIAL, *HONEST}
    assert not [name for by_name in declared().values() for name in by_name if name in taken]


def test_old_text_that_is_not_there_just_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert edited("a + b", [["a", "c"], ["+ b", "- b"]]) == "c - b"
    with pytest.raises(ValueError, match="'a' is 2 times in the reference"):
        edited("a + a", [["a", "c"]])
    other = {"clip_grad_norm_no_ep": {"gone": [["no such text", ""]], "broken": [["return", "("]]}}
    monkeypatch.setattr("problems.audit.mutants.declared", lambda: other)
    gone, broken = mutants_fit_the_reference(problems.load(NAME))
    assert gone.startswith("mutant gone: 'no such text' is 0 times")
    assert broken.startswith("mutant broken:")


class FailingRanks(RankPool):
    """Ranks of which the last raises in one answer."""

    def run(self, task: Callable[..., T], *args: Any, **kwargs: Any) -> list[T]:
        if args[1:] == ("zeros",):
            super().run(raise_on_last_rank)
        return super().run(task, *args, **kwargs)


def test_a_wrong_answer_that_fails_on_one_rank_is_rejected_and_the_next_one_tried() -> None:
    with FailingRanks(2) as ranks:
        zeros, *others = screen(ranks, NAME, "upstream")
    assert (zeros.accepted, zeros.answer) == (False, "zeros")
    assert "it fails: ValueError: the last rank fails" in zeros.why
    assert {f.answer: f.accepted for f in others}["reference"]
    assert not any("it fails" in f.why for f in others)
