"""What a rank cannot know of its answer, and what therefore guards its timed calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

import problems
from problems import guards
from problems.dependence import DIRECTIONS, Dependence, depends, worst_of
from problems.ranks import RankPool
from problems.spec import Tolerance
from problems.thresholds import distances, usable
from problems.timed_work import least_share, work_share

ALLREDUCE = problems.load("collective_primitive.allreduce")


@pytest.mark.parametrize(
    ("slug", "output", "shares", "unknowns"),
    [
        ("allreduce", "total", (0.9, 1.0), DIRECTIONS),
        ("allgather", "stack", (0.4, 0.5), DIRECTIONS),
        ("broadcast", "received", (0.0, 0.0), 0),
        ("gather", "stack", (0.0, 0.0), 0),
        ("clip_grad_norm_no_ep", "grad_tensors", (0.0, 0.0), 1),
        ("importance_sampling_loss", "log_probs", (0.0, 0.0), 0),
        pytest.param(
            *("importance_sampling_loss", "token_losses", (0.0, 0.0), 0), marks=pytest.mark.similar
        ),
        ("importance_sampling_loss", "loss", (0.9, 1.0), 1),
    ],
)
def test_what_the_worst_placed_rank_cannot_know_is_measured(
    two_ranks: RankPool, slug: str, output: str, shares: tuple[float, float], unknowns: int
) -> None:
    found = depends(two_ranks, problems.find(slug))[output]
    assert shares[0] <= found.shares["float32"] <= shares[1]
    assert found.unknowns == unknowns


def test_the_worst_placed_rank_counts_and_what_one_has_not_is_left_out() -> None:
    good = Dependence(shares={"float32": 0.5}, unknowns=80, usable=0.9)
    bad = Dependence(shares={"float32": 0.7}, unknowns=3, usable=0.4)
    found = worst_of([{"a": good, "b": good}, {"a": bad}])
    assert found == {"a": Dependence(shares={"float32": 0.5}, unknowns=3, usable=0.4)}


def test_a_batch_whose_options_ask_for_less_needs_less_than_its_first_call(
    two_ranks: RankPool,
) -> None:
    sinkhorn = problems.find("dinov2_distributed_sinkhorn_knopp")
    assert 0.5 < work_share(two_ranks, sinkhorn) < 0.9
    assert least_share([(10, 0, 4), (20, 0, 2), (20, 0, 4)]) == 0.75
    assert least_share([(10, 0, 4), (20, 9, 4), (10, 0, 4)]) == 1.0


def test_thresholds_lie_beyond_the_tolerance_and_not_on_what_may_be_zero() -> None:
    values, tolerance = torch.tensor([1.0, -2.0, 0.01, torch.inf]), Tolerance(atol=0.1, rtol=0.1)
    assert usable(values, 1.0).tolist() == [True, True, False, False]
    assert (distances(values[:2], tolerance, 1.0) > 0.1 + 0.1 * values[:2].abs()).all()


ENOUGH = {
    **{"shares": {"float32": guards.LEAST_SHARE}, "unknowns": guards.LEAST_UNKNOWNS},
    "usable": guards.LEAST_USABLE,
}


@pytest.mark.parametrize(
    ("outputs", "chained", "why"),
    [
        ({"total": ENOUGH}, ("total",), "no rank can tell 12% of total alone"),
        ({"total": {**ENOUGH, "unknowns": 1}}, (), "1 unknowns"),
        ({"total": {**ENOUGH, "shares": {"float32": 0.01}}}, (), "a rank can tell 99%"),
        ({"total": {**ENOUGH, "usable": 0.07}}, (), "7% of the answer is large enough"),
        ({}, (), "no output"),
        (
            {"total": ENOUGH, "own": {**ENOUGH, "unknowns": 0}},
            ("total",),
            "no rank can tell 12% of total alone",
        ),
    ],
)
def test_a_guard_follows_from_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, outputs: Mapping[str, Any], chained: tuple[str], why: str
) -> None:
    monkeypatch.setattr(guards, "stored", lambda: {ALLREDUCE.slug: {"outputs": outputs}})
    assert guards.chained_outputs(ALLREDUCE, "float32") == chained
    assert (guards.guard(ALLREDUCE, "float32") == "chained batches") is bool(chained)
    assert why in guards.reason(ALLREDUCE, "float32")


def test_where_several_answers_are_right_nothing_is_chained() -> None:
    module = replace(ALLREDUCE, settle=lambda got, truth, keys: got)
    assert guards.chained_outputs(ALLREDUCE, "bfloat16")
    assert guards.chained_outputs(module, "bfloat16") == ()
    assert "several" in guards.reason(module, "bfloat16")


@pytest.mark.parametrize(
    "slug",
    [
        *("broadcast", "gather", "scatter", "clip_grad_norm_no_ep", "importance_sampling_loss"),
        "dinov2_distributed_sinkhorn_knopp",
    ],
)
def test_locks_that_did_not_lock_are_none(slug: str) -> None:
    module = problems.load(problems.find(slug))
    for dtype in module.problem.tolerances:
        assert guards.chained_outputs(module, dtype) == ()
