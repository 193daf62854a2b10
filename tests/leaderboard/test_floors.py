"""The site's floors are the judge's."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from evaluator.messages.job import Dtype
from evaluator.timing import limits, roofline
from leaderboard.metrics import floors
from leaderboard.runs.catalogue import EXPORT, read_file
from problems.spec import Cost
from problems.topology import DATASHEETS

COSTS = [
    cost
    for entry in read_file(EXPORT)
    for by_ranks in entry["costs"].values()
    for cost in by_ranks.values()
]


def test_the_datasheets_are_those_of_the_judge() -> None:
    told = {name: asdict(facts) for name, facts in limits._BY_NAME.items()}
    stored = json.loads(DATASHEETS.read_text())["gpus"]
    assert stored == json.loads(json.dumps(told))


@pytest.mark.parametrize("name", sorted(floors.datasheets()))
def test_every_floor_of_every_problem_is_what_the_judge_computes(name: str) -> None:
    theirs = limits.limits_of(f"NVIDIA {name}")
    assert theirs is not None
    assert len(COSTS) > 700
    for cost in COSTS:
        ours = floors.floors(cost, floors.datasheets()[name])
        judged = roofline.roofline_bounds(Cost(**cost), Dtype.BFLOAT16, theirs, batch_calls=1)
        assert ours.bound_us == judged.bound_us
        assert ours.limiter == judged.limiter
        assert (ours.latency_us or 0.0) == judged.latency_us


def test_a_latency_that_nobody_measured_is_unknown_not_nothing() -> None:
    known, unknown = (floors.limits_called(slug) for slug in ("h200-sxm", "b200-sxm"))
    assert known
    assert unknown
    cost = {"wire_bytes": 1.0, "hbm_bytes": 0.0, "flops": 0.0, "exchanges": 2}
    assert floors.floors(cost, known).limiter == "latency"
    assert floors.floors(cost, unknown).latency_us is None
    assert floors.floors(cost, unknown).limiter == "wire"


def test_a_gpu_is_found_by_the_name_that_a_host_says() -> None:
    found = floors.limits_of("4 x NVIDIA H200")
    assert found is floors.limits_called("h200-sxm")
    assert floors.limits_of("2 x AMD EPYC 7B13") is None
    assert floors.limits_of("NVIDIA H200 MIG 1g.18gb") is None
