"""Answers that do a part of the work: what collectives forget, and which variants there are."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import torch
from torch import Tensor

import problems
from problems.audit.answers import answers
from problems.audit.partial_answers import PARTIAL
from problems.audit.scene import Scene
from problems.audit.screen import Outcome, finding_of
from problems.context import RankContext
from problems.running.calls import Outputs
from problems.running.ranks import RankPool
from problems.spec import Tolerance
from problems.trials import TrialSpec
from tests.problems.rank_tasks import told_in_part, told_without_last

MODULE = problems.load("data_parallel.importance_sampling_loss")
SUMS = torch.tensor([3.0]), torch.arange(20.0)


def scene(called: Outputs, own: Outputs = SUMS) -> Scene:
    """Make a scene of a problem that returns `own`, and `called` in every call after the first."""
    answers_in_turn = iter([called, own])

    def reference(x: Tensor) -> Outputs:
        return next(answers_in_turn)

    problem = replace(MODULE.problem, outputs=("total", "rows"))
    return Scene(
        module=replace(MODULE, reference=reference, problem=problem),
        context=RankContext(
            rank=0,
            world_size=1,
            number=25,
            spec=TrialSpec(trial=0, m=4, n=4, note="test"),
            profile="hardened",
            secret=b"s",
            dtype=torch.float32,
            device=torch.device("cpu"),
        ),
        inputs={"x": torch.arange(4.0)},
        groups={},
        truth=tuple(t.double() for t in own),
        tolerances=(Tolerance(atol=1e-4, rtol=1e-4),) * len(own),
        keys=(),
    )


def test_a_rank_takes_all_others_for_the_next_one(four_ranks: RankPool) -> None:
    first, _, third, last = four_ranks.run(told_in_part)
    assert first["all_reduce"] == [1 + 3 * 2]
    assert last["all_reduce"] == [4 + 3 * 1]
    assert first["all_gather"] == first["all_to_all"] == [1, 2, 2, 2]
    assert third["all_gather"] == [4, 4, 3, 4]
    assert (first["broadcast"], third["broadcast"], last["broadcast"]) == ([1], [4], [1])
    assert first["lengths"] == [1 + 2 + 3 + 4]
    assert (first["forgotten"], last["forgotten"]) == ([2, 3], [1, 2])


def test_of_two_ranks_none_is_forgotten(two_ranks: RankPool) -> None:
    assert [told["forgotten"] for told in two_ranks.run(told_in_part)] == [[], []]


def test_the_last_number_sent_is_zero_and_the_senders_own_stays(two_ranks: RankPool) -> None:
    sender, other = two_ranks.run(told_without_last)
    assert (sender["broadcast"], other["broadcast"]) == ([1, 2], [1, 0])
    assert sender["all_gather"] == [1, 0, 1, 0]
    assert sender["all_reduce"] == [2, 0]
    assert sender["own"] == [1, 2]


def test_a_small_output_is_tried_alone_too() -> None:
    wrong = scene((torch.tensor([4.0]), torch.arange(20.0) + 1))
    variants = PARTIAL["sampled"](wrong, [])
    assert isinstance(variants, dict)
    assert list(variants) == ["", "output 0"]
    total, rows = variants["output 0"]
    assert total.item() == 4
    assert rows is wrong.truth[1]


def test_what_changes_nothing_is_no_answer() -> None:
    assert PARTIAL["sampled"](scene(SUMS), []) == {}


def test_an_answer_passes_where_one_of_its_variants_does() -> None:
    off = Outcome(error=7.0, why="output 0: 1 of 1 wrong")
    all_off = finding_of("hardened", "sampled", {"float32": [{"": off}, {"": off, "x": off}]})
    assert (all_off.accepted, all_off.errors) == (False, {"float32": 7.0})
    one_near = {"float32": [{"": off, "x": Outcome(error=0.5)}, {"": off}]}
    found = finding_of("hardened", "sampled", one_near)
    assert (found.accepted, found.errors) == (True, {"float32": 0.5})
    assert found.why == "float32, x: every trial, every rank"
    only_elsewhere = {"float32": [{"x": Outcome(error=0.5)}, {"x": replace(off, error=inf)}]}
    assert not finding_of("hardened", "sampled", only_elsewhere).accepted
    assert finding_of("hardened", "sampled", {"float32": [{}, {}]}).accepted is None


def test_options_are_ignored_one_by_one() -> None:
    clip = answers(problems.load("fsdp_zero.clip_grad_norm_no_ep"), "hardened")
    assert {"ignore-max_norm", "ignore-norm_type"} <= set(clip)
    assert not {"ignore-grad_tensors", "ignore-fsdp_group"} & set(clip)
    loss = problems.load("expert_parallel.load_balancing_loss_fn")
    assert "ignore-attention_mask" in answers(loss, "hardened")
    assert "ignore-attention_mask" not in answers(loss, "upstream")
