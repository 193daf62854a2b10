"""What lies in a slab for timed calls, and for the trials after them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import torch

import problems
from evaluator import Job, Verdict
from evaluator.buffers import sealing
from evaluator.oracle.group import SPARE_CALLS, OracleGroup
from evaluator.oracle.rank import OracleRank
from problems.trials import TrialSpec
from tests.evaluator.judging import judged
from tests.evaluator.test_oracle_rank import SPEC, Scene


def test_inputs_that_are_sealed_for_a_rank_open_with_its_key_alone() -> None:
    scene = Scene()
    x = scene.view(scene.layout.inputs[0]).clone()
    scene.judge.seal("submission", {0: 7})
    assert torch.equal(scene.view(scene.layout.inputs[0]), x)
    scene.judge.put("submission", (0,))
    assert not (scene.view(scene.layout.inputs[0]) == x).any()
    assert Verdict.LATE_OUTPUT in scene.verdicts()
    sealing.unseal(scene.slab, [place.range for place in scene.layout.inputs], 7)
    assert torch.equal(scene.view(scene.layout.inputs[0]), x)
    scene.answer()
    assert scene.verdicts() == set()


def test_a_commitment_covers_outputs_and_what_a_call_changes_as_they_were_copied() -> None:
    scene = Scene()
    scene.answer()
    ranges = scene.layout.node()["committed"]
    own = sealing.commitment(scene.slab, ranges, 7)
    scene.judge.snapshot("key", "submission", (0,))
    assert scene.judge.commitments("key", [((0,), 7)]) == [own]
    for place in (*scene.layout.outputs, scene.layout.inputs[1]):
        before = scene.slab.clone()
        place.region(scene.slab)[-1] ^= 1
        assert scene.judge.commitments("key", [((0,), 7)]) == [own]
        scene.judge.snapshot("key", "submission", (0,))
        assert scene.judge.commitments("key", [((0,), 7)]) != [own]
        scene.slab.copy_(before)
        scene.judge.snapshot("key", "submission", (0,))


def test_a_trial_where_a_timed_call_lay_begins_at_its_address() -> None:
    judge = Scene().judge
    judge.prepare("timed", [replace(SPEC, trial=trial) for trial in range(4)], False, 0, 0)
    hidden = replace(SPEC, m=SPEC.m - 3)
    for start, timed in enumerate(judge.caches["timed"].calls):
        plan, _ = judge.prepare("hidden", [hidden], False, 0, start)
        assert timed.layout is not None
        (slot,) = plan["slots"]
        assert slot["sealed"][0][0] == timed.layout.inputs[0].offset


class Workers:
    """Notes what the oracle's ranks are asked to prepare."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[TrialSpec], int, int]] = []

    def all(self, command: object, *given: Any) -> list[Any]:
        assert command is OracleRank.prepare
        key, specs, _, kept, start = given
        self.asked.append((key, specs, kept, start))
        return [({}, 1 << 20)] * 2

    def answers(self, name: str) -> None:
        """Say that a command is done."""


def _group() -> tuple[OracleGroup, Workers]:
    group, workers = OracleGroup.__new__(OracleGroup), Workers()
    vars(group).update(
        job=Job(problem="broadcast", source="x"),
        module=problems.load(problems.find("broadcast")),
        _chooser=random.Random(0),
        _workers=workers,
        _secret=b"secret",
        _plans={},
        _nbytes={},
        _made=0,
        _size=0,
        _batch_calls=1,
    )
    group.prepare_all()
    return group, workers


def test_no_two_timed_calls_of_a_run_share_their_options_by_their_place() -> None:
    group, workers = _group()
    for calls in (0, 0, 4):
        group.refresh(calls)
    timed = [specs for key, specs, _, _ in workers.asked if key == "timed"]
    assert [len(specs) for specs in timed] == [16 + SPARE_CALLS, 16, 16, 4]
    turns = [spec.turn for specs in timed for spec in specs]
    assert len(set(turns)) == len(turns)
    assert min(turns) >= group.job.trials  # nor with a trial


def test_a_trial_after_the_timed_calls_lies_where_any_of_their_first_half_lay() -> None:
    starts = set()
    for seed in range(60):
        group, workers = _group()
        vars(group)["_chooser"] = random.Random(seed)
        group.make_ready("trial 5", where_timed=True)
        starts.add(workers.asked[-1][-1])
    assert starts == set(range(SPARE_CALLS, SPARE_CALLS + 8))


LIES_WHERE_TIMED = """
import sys

import torch.distributed as dist

timed = set()


def solution(tensor):
    runner = sys._getframe(2).f_locals
    if getattr(runner.get("command"), "name", "") == "CALL":
        if len(runner["slots"]) > 1:
            timed.add(tensor.data_ptr())
        elif timed and tensor.data_ptr() not in timed:
            raise RuntimeError("a trial lies elsewhere")
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


def test_a_kernel_meets_timed_addresses_again_in_trials_that_it_cannot_foresee() -> None:
    report = judged(Job(problem="allreduce", source=LIES_WHERE_TIMED), hurried=True)
    assert report.verdict is Verdict.OK, report.message
