"""Screen a problem with trivial answers, to see what its inputs and tolerance let pass.

Wrong answers that cost little must be rejected, honest ones that only round differently accepted.
`hardened` compares with the float64 oracle; `upstream` with the reference itself and PKB's
atol = rtol = 1e-2, as PKB does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.answers import HONEST, answers
from problems.calls import Inputs, Outputs, call, keys_of_ties, true_answer
from problems.comparison import compare
from problems.context import RankContext
from problems.mesh import mesh_groups
from problems.ranks import RankFailure, RankPool
from problems.scene import Scene
from problems.spec import Tolerance
from problems.trials import correctness_trials

# PKB has no inputs in float16.
DTYPES = {"upstream": ("float32", "bfloat16"), "hardened": ("float32", "bfloat16", "float16")}
TRIALS = {"upstream": 2, "hardened": 6}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Hold the worst `error` in tolerances, infinite where no unit exists, and `why` rejected."""

    error: float = 0.0
    why: str | None = None

    def worse_of(self, other: Outcome) -> Outcome:
        """Return the larger error with the first reason."""
        return Outcome(error=max(self.error, other.error), why=self.why or other.why)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Say what became of an answer. `accepted`: a wrong one passed everywhere in some dtype, or an
    honest one did in every dtype; None where the problem offers no such answer.

    `errors` holds per dtype the worst error over trials, ranks and outputs, in tolerances.
    """

    profile: str
    answer: str
    honest: bool
    accepted: bool | None
    why: str
    errors: Mapping[str, float]

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
    settings = {
        dtype: Setting(
            name=name, profile=profile, size=size, dtype=dtype, secret=secret, device=ranks.device
        )
        for dtype in DTYPES[profile]
    }
    found = {d: _outcomes(ranks, setting) for d, setting in settings.items()}
    return [
        _finding(profile, answer, {dtype: by[answer] for dtype, by in found.items()})
        for answer in answers(problems.load(name))
    ]


def _outcomes(ranks: RankPool, setting: Setting) -> dict[str, list[Outcome | None]]:
    """Return each rank's outcome of every answer in one dtype.

    A wrong answer that raises is rejected for it: the ranks, of which some may still wait for it,
    are ended, and the next answer gets new ones. Raises RankFailure of all others.
    """
    ranks.run(_prepare, setting)
    found: dict[str, list[Outcome | None]] = {}
    for answer in answers(problems.load(setting.name)):
        try:
            found[answer] = ranks.run(outcome_on_rank, setting, answer)
        except RankFailure as failure:
            if answer in HONEST:
                raise
            why = f"it fails: {str(failure).strip().splitlines()[-1]}"
            found[answer] = [Outcome(error=inf, why=why)] * ranks.world_size
    return found


def _prepare(rank: int, world_size: int, setting: Setting) -> None:
    _scenes(rank, world_size, setting)


def outcome_on_rank(rank: int, world_size: int, setting: Setting, answer: str) -> Outcome | None:
    """Return this rank's outcome of an answer over all trials; None where it does not apply."""
    scenes = _scenes(rank, world_size, setting)
    module = scenes[0].module
    give, tolerance = (
        answers(module)[answer],
        module.problem.tolerance(setting.profile, setting.dtype),
    )
    found: Outcome | None = None
    for index, scene in enumerate(scenes):
        got = give(scene, scenes[index + 1 :] + scenes[:index])
        if got is None:
            continue
        seen = outcome(scene.settled(got), scene.truth, tolerance)
        if seen.why:
            seen = replace(seen, why=f"trial {scene.context.spec.trial}, {seen.why}")
        found = seen if found is None else found.worse_of(seen)
    return found


def outcome(got: Outputs, truth: Outputs, tolerance: Tolerance) -> Outcome:
    """Compare all outputs of one call."""
    if len(got) != len(truth):
        return Outcome(error=inf, why=f"{len(got)} outputs instead of {len(truth)}")
    worst = Outcome()
    for index, (mine, expected) in enumerate(zip(got, truth, strict=True)):
        worst = worst.worse_of(_output_outcome(index, mine, expected, tolerance))
    return worst


def _output_outcome(index: int, got: Tensor, expected: Tensor, tolerance: Tolerance) -> Outcome:
    if got.shape != expected.shape:
        why = f"output {index}: shape {list(got.shape)}, not {list(expected.shape)}"
        return Outcome(error=inf, why=why)
    found = compare(got, expected, tolerance)
    if found.ok:
        return Outcome(error=found.max_error or 0.0)
    error = inf if found.nonfinite or not found.max_error else found.max_error
    worst = f", up to {error:.3g} tolerances" if error < inf else ""
    why = f"output {index}: {found.mismatched} of {found.elements} wrong{worst}"
    return Outcome(error=error, why=why)


@lru_cache(maxsize=1)
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
        profile=profile, answer=answer, honest=honest, accepted=accepted, why=why, errors=errors
    )
