"""Gloo ranks, their groups, and the screen's own means."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from problems.audit.screen import outcome
from problems.running.mesh import mesh_groups
from problems.running.ranks import RankFailure, RankPool
from problems.spec import Dims, Tolerance
from tests.problems.rank_tasks import mesh_members, raise_on_last_rank, rank_and_world

TOLERANCE = Tolerance(atol=1e-3, rtol=1e-3)


def test_results_come_by_rank(four_ranks: RankPool) -> None:
    assert four_ranks.run(rank_and_world) == [(rank, 4) for rank in range(4)]


def test_a_failing_rank_is_named_and_the_next_call_works() -> None:
    with RankPool(2) as ranks:
        with pytest.raises(RankFailure, match=r"rank 1: (?s:.*)the last rank fails"):
            ranks.run(raise_on_last_rank)
        assert ranks.run(rank_and_world) == [(0, 2), (1, 2)]


def test_the_last_axis_of_a_mesh_is_consecutive_ranks(four_ranks: RankPool) -> None:
    members = four_ranks.run(mesh_members, 2)
    assert [m["ep"] for m in members] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert [m["ep_fsdp"] for m in members] == [[0, 2], [1, 3], [0, 2], [1, 3]]
    assert all(m["world"] == [0, 1, 2, 3] for m in members)


def test_a_mesh_that_does_not_hold_the_world_is_refused(two_ranks: RankPool) -> None:
    with pytest.raises(RankFailure, match=r"of \(0, 3\) does not hold 2 ranks"):
        two_ranks.run(mesh_members, 3)


def test_a_mesh_needs_a_process_group() -> None:
    with pytest.raises(ValueError, match="join the process group"):
        mesh_groups(("world",), Dims(), 0, 2)


def test_the_screen_says_why_it_rejects_and_by_how_much() -> None:
    truth = (torch.ones(4, 2, dtype=torch.float64),)
    right = outcome((torch.ones(4, 2),), truth, [TOLERANCE])
    assert (right.why, right.error) == (None, 0.0)
    assert outcome((), truth, [TOLERANCE]).why == "0 outputs instead of 1"
    shape = outcome((torch.ones(2),), truth, [TOLERANCE])
    assert shape.why == "output 0: shape [2], not [4, 2]"
    wrong = outcome((torch.zeros(4, 2),), truth, [TOLERANCE])
    assert wrong.why == "output 0: 8 of 8 wrong, up to 500 tolerances"
    assert wrong.error == pytest.approx(500)
    rough = outcome((torch.full((4, 2), 1.001),), truth, [replace(TOLERANCE, rms=0.1)])
    assert rough.why == "output 0: rms error 0.5 tolerances, limit 0.1"
    assert (rough.error, rough.rms) == pytest.approx((5, 0.5), rel=1e-3)


def test_each_output_is_compared_by_its_own_tolerance() -> None:
    truth = (torch.ones(4, dtype=torch.float64), torch.ones(2, dtype=torch.float64))
    near = (torch.full((4,), 1.001), torch.full((2,), 1.001))
    tight = replace(TOLERANCE, atol=1e-5, rtol=1e-5)
    assert outcome(near, truth, [TOLERANCE, TOLERANCE]).why is None
    assert outcome(near, truth, [TOLERANCE, tight]).why == (
        "output 1: 2 of 2 wrong, up to 50 tolerances"
    )
