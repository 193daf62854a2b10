"""What the judge sees in a slab: every way to leave it wrong has its verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator import Job, Profile, Verdict
from evaluator.buffers.control import Control
from evaluator.buffers.control_page import CONTROL_BYTES, sealed_memfd
from evaluator.buffers.slab import GUARD_BYTES, Region
from evaluator.diagnosis.diagnose import first_fault
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.report import OutputCheck
from evaluator.oracle.rank import OracleRank
from problems import ProblemModule
from problems.context import RankContext
from problems.running.calls import Outputs
from problems.spec import DEFAULT_TOLERANCES, Cost, Dims, Problem, Tolerance, tolerances
from problems.trials import TrialSpec

LIMITS = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 4e-3}
SPEC = TrialSpec(trial=0, m=16, n=8, note="test")
Doubled = tuple[torch.Tensor, torch.Tensor]


def _inputs(context: RankContext, d: Dims) -> dict[str, object]:
    return {"x": context.randn(d.m, d.n), "grads": [context.randn(d.n)], "factor": 2}


def _reference(x: torch.Tensor, grads: list[torch.Tensor], factor: int) -> Doubled:
    grads[0] *= factor
    return x * factor, x.argmax(dim=1)


MODULE = ProblemModule(
    slug="double",
    category="other",
    path=Path("double.py"),
    problem=Problem(
        number=99,
        title="t",
        source="s",
        domain="d",
        summary="s",
        statement="s",
        outputs=("doubled", "best"),
        mutates=("grads",),
    ),
    dims=lambda m, n, world_size: Dims(m=m, n=n),
    make_inputs=_inputs,
    reference=_reference,
    oracle=_reference,
    keys=None,
    settle=None,
    cost=lambda d, world_size, itemsize: Cost(wire_bytes=0, flops=0, hbm_bytes=0),
)


class Scene:
    """A judge's rank and a submission's view of the same slab."""

    def __init__(
        self,
        module: ProblemModule = MODULE,
        specs: Sequence[TrialSpec] = (SPEC,),
        profile: Profile = Profile.HARDENED,
    ) -> None:
        self.judge = OracleRank(
            job=Job(problem="double", source="x", profile=profile),
            rank=0,
            module=module,
            secret=b"secret",
            canary_secret=b"another",
            controls={"submission": Control(sealed_memfd("test", CONTROL_BYTES))},
        )
        _, nbytes = self.judge.prepare("key", list(specs), True, 0, 0)
        ((fd, _),) = self.judge.attach(nbytes, ["submission"])
        os.close(fd)
        self.refill()
        layout = self.judge.caches["key"].calls[0].layout
        assert layout is not None
        self.layout = layout
        self.slab = self.judge.slabs["submission"]

    def refill(self) -> None:
        self.judge.clear("key", "submission")
        self.judge.release("submission", (0,), 1, 0.0)

    def view(self, place: Region) -> torch.Tensor:
        return place.on(self.slab)

    def answer(self) -> None:
        """What an honest kernel does."""
        x, grads = (self.view(place) for place in self.layout.inputs)
        doubled, best = (self.view(place) for place in self.layout.outputs)
        result = _reference(x, [grads], 2)
        doubled.copy_(result[0])
        best.copy_(result[1])

    def verdicts(self) -> set[Verdict]:
        self.judge.snapshot("key", "submission", (0,))
        checks: list[OutputCheck] = self.judge.check("key", (0,))[0]
        return {check.verdict for check in checks} - {Verdict.OK}


def test_an_honest_answer_passes() -> None:
    scene = Scene()
    scene.answer()
    assert scene.verdicts() == set()


def test_nothing_written_is_late() -> None:
    scene = Scene()
    assert Verdict.LATE_OUTPUT in scene.verdicts()


def _unwritten_tail(scene: Scene) -> None:
    place = scene.layout.outputs[0]
    before = scene.view(place).clone()
    scene.answer()
    scene.view(place)[-1].copy_(before[-1])


def _wrong_value(scene: Scene) -> None:
    scene.answer()
    scene.view(scene.layout.outputs[0])[3, 3] += 0.1


def _wrong_integer(scene: Scene) -> None:
    scene.answer()
    scene.view(scene.layout.outputs[1])[0] += 1


def _nan(scene: Scene) -> None:
    scene.answer()
    scene.view(scene.layout.outputs[0])[3, 3] = float("nan")


def _guard_after_output(scene: Scene) -> None:
    scene.answer()
    place = scene.layout.outputs[-1]
    scene.slab[place.offset + place.nbytes + GUARD_BYTES - 1] ^= 1


def _guard_before_input(scene: Scene) -> None:
    scene.answer()
    scene.slab[scene.layout.inputs[0].offset - 1] ^= 1


def _input_changed(scene: Scene) -> None:
    scene.answer()
    scene.view(scene.layout.inputs[0])[0, 0] += 1e-6


def _mutation_left_out(scene: Scene) -> None:
    scene.answer()
    scene.view(scene.layout.inputs[1]).mul_(0.5)


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        (_unwritten_tail, Verdict.LATE_OUTPUT),
        (_wrong_value, Verdict.OUTPUT_MISMATCH),
        (_wrong_integer, Verdict.OUTPUT_MISMATCH),
        (_nan, Verdict.NONFINITE_OUTPUT),
        (_guard_after_output, Verdict.PROTOCOL_VIOLATION),
        (_guard_before_input, Verdict.PROTOCOL_VIOLATION),
        (_input_changed, Verdict.INPUT_CONTRACT_BROKEN),
        (_mutation_left_out, Verdict.OUTPUT_MISMATCH),
    ],
)
def test_every_wrong_has_its_verdict(wrong: Callable[[Scene], None], verdict: Verdict) -> None:
    scene = Scene()
    wrong(scene)
    assert scene.verdicts() == {verdict}


def test_an_output_is_judged_by_its_own_tolerance() -> None:
    own = {"grads": dict.fromkeys(DEFAULT_TOLERANCES, Tolerance(atol=1e-7, rtol=1e-7))}
    tighter = replace(MODULE, problem=replace(MODULE.problem, output_tolerances=own))
    for module, verdicts in ((MODULE, set()), (tighter, {Verdict.OUTPUT_MISMATCH})):
        scene = Scene(module)
        scene.answer()
        scene.view(scene.layout.inputs[1]).mul_(1 + 1e-6)
        assert scene.verdicts() == verdicts


def test_an_output_that_is_too_rough_as_a_whole_is_wrong_and_says_by_how_much() -> None:
    limited = replace(MODULE.problem, tolerances=tolerances(**LIMITS, rms={"float32": 0.05}))
    scene = Scene(replace(MODULE, problem=limited))
    scene.answer()
    doubled = scene.view(scene.layout.outputs[0])
    doubled.add_(doubled.sign() * 2e-5 * doubled.abs().clamp(min=doubled.square().mean().sqrt()))
    scene.judge.snapshot("key", "submission", (0,))
    (wrong,) = (c for c in scene.judge.check("key", (0,))[0] if c.verdict is not Verdict.OK)
    assert (wrong.verdict, wrong.mismatched) == (Verdict.OUTPUT_MISMATCH, 0)
    assert wrong.max_error is not None
    assert wrong.max_error < 1
    fault = first_fault([wrong], "trial 0")
    said = (
        r"trial 0: doubled of rank 0 is too rough as a whole: rms error 0\.1\d* tolerances, limit"
    )
    assert re.fullmatch(said + r" 0\.05", str(fault))


def test_a_refill_forgets_the_last_answer() -> None:
    scene = Scene()
    scene.answer()
    scene.refill()
    assert Verdict.LATE_OUTPUT in scene.verdicts()


def test_a_reference_that_fails_its_own_oracle_is_our_fault() -> None:
    broken = replace(MODULE, reference=lambda x, grads, factor: (x, x.argmax(dim=1)))
    with pytest.raises(EvaluatorError, match="fails its own oracle"):
        Scene(broken)


def test_upstream_is_compared_with_what_the_reference_returns() -> None:
    scene = Scene(profile=Profile.UPSTREAM)
    (call,) = scene.judge.caches["key"].calls
    assert call.truth[0].dtype is torch.float32
    assert scene.judge.comparer.tolerance.absolute
    _mutation_left_out(scene)
    assert scene.verdicts() == set()


def test_upstream_takes_what_is_nearer_to_the_exact_answer_than_the_reference_is() -> None:
    def rough(x: torch.Tensor, grads: list[torch.Tensor], factor: int) -> Doubled:
        doubled, best = _reference(x, grads, factor)
        return doubled + 0.5, best

    scene = Scene(replace(MODULE, reference=rough), profile=Profile.UPSTREAM)
    doubled = scene.view(scene.layout.outputs[0])
    for error, expected in (
        *((0.0, set()), (0.4, set()), (-0.4, set()), (0.505, set())),
        *((-0.6, {Verdict.OUTPUT_MISMATCH}), (0.8, {Verdict.OUTPUT_MISMATCH})),
    ):
        scene.answer()
        doubled += error
        assert scene.verdicts() == expected, error
    scene.answer()
    doubled[0, 0] = float("nan")
    assert scene.verdicts() == {Verdict.NONFINITE_OUTPUT}


def _settle(got: Outputs, truth: Outputs, keys: Outputs) -> Outputs:
    """A place is as good as the best where its value is no smaller."""
    (values,) = keys
    chosen = got[1].clamp(0, values.shape[1] - 1).unsqueeze(1)
    good = values.gather(1, chosen).squeeze(1) >= values.amax(dim=1)
    return (got[0], torch.where(good, truth[1], got[1]), *got[2:])


def test_an_answer_as_good_as_the_truth_passes_where_the_problem_says_so() -> None:
    def tied(context: RankContext, d: Dims) -> dict[str, object]:
        inputs = _inputs(context, d)
        x = inputs["x"]
        assert isinstance(x, torch.Tensor)
        x[:, 5] = x[:, 2] = 9.0
        return inputs

    either = replace(MODULE, make_inputs=tied, keys=lambda x, grads, factor: (x,), settle=_settle)
    upstream = replace(either, problem=replace(MODULE.problem, settles_upstream=True))
    for module, profile, expected in (
        (either, Profile.HARDENED, set()),
        (replace(either, keys=None), Profile.HARDENED, {"output_mismatch"}),
        (either, Profile.UPSTREAM, {"output_mismatch"}),
        (upstream, Profile.UPSTREAM, set()),
    ):
        scene = Scene(module, profile=profile)
        scene.answer()
        best = scene.view(scene.layout.outputs[1])
        best.copy_(torch.where(best == 2, 5, 2))
        assert scene.verdicts() == expected
        scene.view(scene.layout.outputs[1])[0] = 1 << 40
        assert scene.verdicts() == {Verdict.OUTPUT_MISMATCH}
