"""What the judge sees in a batch whose calls open one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from evaluator import Verdict
from evaluator.buffers.slab import GUARD_BYTES
from evaluator.rank.chaining import input_opener
from problems import ProblemModule, guards
from problems.trials import TrialSpec
from tests.evaluator.test_oracle_rank import MODULE, Scene

SPECS = [TrialSpec(trial=trial, m=64, n=32, note="") for trial in (0, 1)]

MEASURED = {
    **{"shares": {"float32": 1.0, "bfloat16": 1.0}, "unknowns": guards.LEAST_UNKNOWNS},
    "usable": guards.LEAST_USABLE,
}


@pytest.fixture(autouse=True)
def _depends_on_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    _measure(monkeypatch, {"doubled": MEASURED})


def _measure(monkeypatch: pytest.MonkeyPatch, outputs: Mapping[str, Any]) -> None:
    monkeypatch.setattr(guards, "stored", lambda: {MODULE.slug: {"outputs": outputs}})


class LockedScene(Scene):
    """Two calls, of which the second opens with the answer of the first."""

    def __init__(self, module: ProblemModule = MODULE) -> None:
        super().__init__(module, SPECS)
        self.judge.clear("key", "submission")
        first, self.node = self.judge.chain_inputs("key", (0, 1), True)["locks"]
        assert first is None
        self.judge.release("submission", (0, 1), 1, 0.0, True)

    def open_second(self) -> None:
        input_opener(self.judge.memories[0], self.node)(True)
        layout = self.judge.caches["key"].calls[1].layout
        assert layout is not None
        self.layout = layout

    def both(self) -> list[set[Verdict]]:
        self.judge.snapshot("key", "submission", (0, 1))
        found = self.judge.check("key", (0, 1))
        return [{check.verdict for check in checks} - {Verdict.OK} for checks in found]


def test_a_batch_that_is_answered_call_by_call_passes() -> None:
    scene = LockedScene()
    scene.answer()
    scene.open_second()
    scene.answer()
    assert scene.both() == [set(), set()]


def test_a_lock_that_opened_before_the_answer_was_there_is_a_late_one() -> None:
    scene = LockedScene()
    own = scene.layout
    scene.open_second()
    scene.answer()
    scene.layout = own
    scene.answer()
    assert scene.both()[0] == set()
    assert Verdict.LATE_OUTPUT in scene.both()[1]
    assert Verdict.INPUT_CONTRACT_BROKEN not in scene.both()[1]


def test_after_a_wrong_call_of_a_batch_none_is_looked_at() -> None:
    scene = LockedScene()
    scene.answer()
    scene.view(scene.layout.outputs[0]).mul_(2.0)
    scene.open_second()
    scene.answer()
    assert scene.both() == [{Verdict.OUTPUT_MISMATCH}]


def test_where_other_answers_are_as_good_nothing_is_locked() -> None:
    module = replace(MODULE, keys=lambda *_: (), settle=lambda got, truth, keys: got)
    scene = Scene(module, SPECS)
    scene.judge.clear("key", "submission")
    assert scene.judge.chain_inputs("key", (0, 1), True)["locks"] == [None, None]


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"doubled": {**MEASURED, "unknowns": guards.LEAST_UNKNOWNS - 1}},
        {"doubled": {**MEASURED, "shares": {"float32": 0.9 * guards.LEAST_SHARE}}},
        {"doubled": {**MEASURED, "usable": 0.9 * guards.LEAST_USABLE}},
    ],
    ids=["nothing_measured", "few_unknowns", "known_to_a_rank", "mostly_small"],
)
def test_an_answer_that_a_rank_can_tell_alone_locks_nothing(
    monkeypatch: pytest.MonkeyPatch, known: Mapping[str, Any]
) -> None:
    _measure(monkeypatch, known)
    scene = Scene(MODULE, SPECS)
    scene.judge.clear("key", "submission")
    assert scene.judge.chain_inputs("key", (0, 1), True)["locks"] == [None, None]


def test_a_lock_opens_with_an_answer_that_depends_on_others_and_with_no_larger_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = replace(SPECS[0], n=1024)
    _measure(monkeypatch, {"grads": MEASURED})
    scene = Scene(MODULE, [long, replace(long, trial=1)])
    scene.judge.clear("key", "submission")
    _, node = scene.judge.chain_inputs("key", (0, 1), True)["locks"]
    calls = scene.judge.caches["key"].calls
    assert node["answer"]["shape"] == [1024] == list(calls[0].truth[2].shape)


def test_a_guard_band_that_a_kernel_wrote_is_broken_all_the_same() -> None:
    scene = LockedScene()
    scene.answer()
    scene.open_second()
    scene.answer()
    scene.slab[scene.layout.outputs[0].offset - 1] += 1
    assert scene.both() == [{Verdict.PROTOCOL_VIOLATION}]


def test_an_empty_batch_takes_the_same_steps_and_changes_nothing() -> None:
    scene = LockedScene()
    before = scene.slab.clone()
    input_opener(scene.judge.memories[0], scene.node)(False)
    assert torch.equal(scene.slab, before)


def test_inputs_that_are_not_to_be_opened_are_written_as_they_are() -> None:
    scene = LockedScene()
    scene.judge.release("submission", (0, 1), 2, 0.0, False)
    scene.answer()
    layout = scene.judge.caches["key"].calls[1].layout
    assert layout is not None
    scene.layout = layout
    scene.answer()
    assert scene.both() == [set(), set()]


def test_a_snapshot_of_one_call_holds_what_it_left_and_no_more() -> None:
    scene = LockedScene()
    scene.answer()
    scene.judge.snapshot("key", "submission", (0,))
    scene.view(scene.layout.outputs[0]).mul_(2.0)
    checks = scene.judge.check("key", (0,))
    assert [{check.verdict for check in own} for own in checks] == [{Verdict.OK}]


@pytest.mark.parametrize("offset", [-1, -GUARD_BYTES])
def test_the_band_around_one_call_is_looked_at(offset: int) -> None:
    scene = LockedScene()
    scene.answer()
    scene.slab[scene.layout.outputs[0].offset + offset] += 1
    scene.judge.snapshot("key", "submission", (0,))
    assert scene.judge.check("key", (0,))[0][0].verdict is Verdict.PROTOCOL_VIOLATION
