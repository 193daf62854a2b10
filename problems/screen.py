"""Screen a problem with trivial answers, to see what its inputs and tolerance let pass.

Wrong answers that cost little must be rejected, honest ones that only round differently accepted.
`hardened` compares with the float64 oracle; `upstream` with the reference itself and PKB's
atol = rtol = 1e-2, as PKB does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.answers import ANSWERS, HONEST, Scene
from problems.calls import Inputs, Outputs, call, keys_of_ties, true_answer
from problems.comparison import compare
from problems.context import RankContext
from problems.mesh import mesh_groups
from problems.ranks import RankPool
from problems.spec import Tolerance
from problems.trials import correctness_trials

# PKB has no inputs in float16.
DTYPES = {"upstream": ("float32", "bfloat16"), "hardened": ("float32", "bfloat16", "float16")}
TRIALS = {"upstream": 2, "hardened": 6}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Hold the worst `error`, in tolerances or of the limit on its root mean square, whichever is
    more, that root mean square in tolerances (`rms`), both infinite where no unit exists, and
    `why` rejected."""

    error: float = 0.0
    rms: float = 0.0
    why: str | None = None

    def worse_of(self, other: Outcome) -> Outcome:
        """Return the larger errors with the first reason."""
        return Outcome(
            error=max(self.error, other.error),
            rms=max(self.rms, other.rms),
            why=self.why or other.why,
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Say what became of an answer. `accepted`: a wrong one passed everywhere in some dtype, or an
    honest one did in every dtype; None where the problem offers no such answer.

    `errors` holds per dtype the worst error over trials, ranks and outputs, in tolerances, or as a
    share of the limit on its root mean square where that is more; `rms_errors` the worst root mean
    square in tolerances.
    """

    profile: str
    answer: str
    honest: bool
    accepted: bool | None
    why: str
    errors: Mapping[str, float]
    rms_errors: Mapping[str, float]

    @property
    def as_it_should_be(self) -> bool:
        return self.accepted is None or self.accepted is self.honest


@dataclass(frozen=True, kw_only=True)
class Setting:
    name: str
    profile: str
    size: str
    dtype: str
    secret: bytes
    device: str


def screen(
    ranks: RankPool, name: str, profile: str, *, size: str = "tiny", secret: bytes = b"screen"
) -> list[Finding]:
    """Try every answer on every rank in every trial, in each of DTYPES; return a finding each."""
    outcomes = {}
    for dtype in DTYPES[profile]:
        setting = Setting(
            name=name,
            profile=profile,
            size=size,
            dtype=dtype,
            secret=secret,
            device=ranks.device,
        )
        outcomes[dtype] = ranks.run(outcomes_on_rank, setting)
    return [
        _finding(profile, answer, {d: [o.get(answer) for o in by] for d, by in outcomes.items()})
        for answer in ANSWERS
    ]


def outcomes_on_rank(rank: int, world_size: int, setting: Setting) -> dict[str, Outcome]:
    """Return this rank's outcome over all trials of every answer that applies."""
    scenes = _scenes(rank, world_size, setting)
    tolerance = scenes[0].module.problem.tolerance(setting.profile, setting.dtype)
    found: dict[str, Outcome] = {}
    for index, scene in enumerate(scenes):
        others = scenes[index + 1 :] + scenes[:index]
        for answer, give in ANSWERS.items():
            got = give(scene, others)
            if got is None:
                continue
            seen = outcome(scene.settled(got), scene.truth, tolerance)
            if seen.why:
                seen = replace(seen, why=f"trial {scene.context.spec.trial}, {seen.why}")
            found[answer] = found.get(answer, Outcome()).worse_of(seen)
    return found


def outcome(got: Outputs, truth: Outputs, tolerance: Tolerance) -> Outcome:
    """Compare all outputs of one call."""
    if len(got) != len(truth):
        return Outcome(error=inf, rms=inf, why=f"{len(got)} outputs instead of {len(truth)}")
    worst = Outcome()
    for index, (mine, expected) in enumerate(zip(got, truth, strict=True)):
        worst = worst.worse_of(_output_outcome(index, mine, expected, tolerance))
    return worst


def _output_outcome(index: int, got: Tensor, expected: Tensor, tolerance: Tolerance) -> Outcome:
    if got.shape != expected.shape:
        why = f"output {index}: shape {list(got.shape)}, not {list(expected.shape)}"
        return Outcome(error=inf, rms=inf, why=why)
    found = compare(got, expected, tolerance)
    if found.ok:
        error = max(found.max_error or 0.0, found.rms_share)
        return Outcome(error=error, rms=found.rms_error or 0.0)
    rms = inf if found.rms_error is None else found.rms_error
    error = inf if found.nonfinite or not found.max_error else found.max_error
    if not found.mismatched:
        why = f"output {index}: rms error {rms:.3g} tolerances, limit {found.rms_limit:.3g}"
        return Outcome(error=max(error, found.rms_share), rms=rms, why=why)
    worst = f", up to {error:.3g} tolerances" if error < inf else ""
    why = f"output {index}: {found.mismatched} of {found.elements} wrong{worst}"
    return Outcome(error=max(error, found.rms_share), rms=rms, why=why)


def _scenes(rank: int, world_size: int, setting: Setting) -> list[Scene]:
    module, profile = problems.load(setting.name), setting.profile
    problem, size = module.problem, module.problem.sizes[setting.size]
    groups = mesh_groups(problem.mesh, module.dims(size.m, size.n, world_size), rank, world_size)
    device = torch.device("cuda", rank) if setting.device == "cuda" else torch.device("cpu")
    scenes = []
    for spec in correctness_trials(problem, setting.size, profile, TRIALS[profile], setting.secret):
        context = RankContext(
            rank=rank,
            world_size=world_size,
            number=problem.number,
            spec=spec,
            profile=profile,
            secret=setting.secret,
            dtype=getattr(torch, setting.dtype),
            device=device,
        )
        inputs = module.make_inputs(context, module.dims(spec.m, spec.n, world_size))
        scenes.append(_scene(module, context, inputs, groups))
    return scenes


def _scene(
    module: ProblemModule,
    context: RankContext,
    inputs: Inputs,
    groups: Mapping[str, ProcessGroup],
) -> Scene:
    keys: Outputs = ()
    if context.profile == "upstream":
        truth = call(module.reference, module.problem, inputs, groups)
    else:
        truth = tuple(t for _, t in true_answer(module, inputs, groups))
        keys = keys_of_ties(module, inputs, groups)
    return Scene(
        module=module, context=context, inputs=inputs, groups=groups, truth=truth, keys=keys
    )


def _finding(profile: str, answer: str, outcomes: Mapping[str, list[Outcome | None]]) -> Finding:
    """Judge an answer by each rank's outcome for every dtype; None where the answer is not one."""
    honest = answer in HONEST
    seen = {d: [o for o in by_rank if o] for d, by_rank in outcomes.items() if any(by_rank)}
    errors = {dtype: max(o.error for o in by_rank) for dtype, by_rank in seen.items()}
    passed = {dtype: not any(o.why for o in by_rank) for dtype, by_rank in seen.items()}
    accepted, why = None, "does not apply"
    if passed:
        accepted = all(passed.values()) if honest else any(passed.values())
        told = next(dtype for dtype, ok in passed.items() if ok is accepted)
        reasons = [f"rank {r}, {o.why}" for r, o in enumerate(seen[told]) if o.why]
        why = f"{told}, {reasons[0]}" if reasons else f"{told}: every trial, every rank"
    return Finding(
        profile=profile,
        answer=answer,
        honest=honest,
        accepted=accepted,
        why=why,
        errors=errors,
        rms_errors={dtype: max(o.rms for o in by_rank) for dtype, by_rank in seen.items()},
    )
