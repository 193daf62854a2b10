"""The trivial-answer screen: what a problem's inputs and tolerance let pass.

Wrong answers that cost little must be rejected, honest ones that only round differently accepted.
`hardened` compares with the float64 oracle; `upstream` with the reference itself and PKB's
atol = rtol = 1e-2, as PKB does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.answers import ANSWERS, HONEST, Scene
from problems.calls import Inputs, Outputs, call, mapped, widened
from problems.comparison import compare
from problems.context import RankContext
from problems.mesh import arguments, mesh_groups
from problems.ranks import GlooRanks
from problems.spec import Tolerance
from problems.trials import correctness_trials

DTYPES = ("float32", "bfloat16")
TRIALS = {"upstream": 2, "hardened": 6}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`accepted`: a wrong answer passed everywhere, or an honest one did in every dtype.

    None where the problem offers no such answer, as low precision where nothing is a float.
    """

    profile: str
    answer: str
    honest: bool
    accepted: bool | None
    why: str

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


def screen(
    ranks: GlooRanks, name: str, profile: str, *, size: str = "tiny", secret: bytes = b"screen"
) -> list[Finding]:
    """Every answer on every rank in every trial, in float32 and bfloat16."""
    rejections: dict[str, list[dict[str, str | None]]] = {}
    for dtype in DTYPES:
        setting = Setting(name=name, profile=profile, size=size, dtype=dtype, secret=secret)
        rejections[dtype] = ranks.run(rejections_on_rank, setting)
    return [
        _finding(
            profile, answer, {d: [r.get(answer, "") for r in by] for d, by in rejections.items()}
        )
        for answer in ANSWERS
    ]


def rejections_on_rank(rank: int, world_size: int, setting: Setting) -> dict[str, str | None]:
    """Answer -> why this rank rejects it, None when it accepts it in all trials.

    Answers that the problem does not offer are left out.
    """
    scenes = _scenes(rank, world_size, setting)
    tolerance = scenes[0].module.problem.tolerance(setting.profile, setting.dtype)
    found: dict[str, str | None] = {}
    for index, scene in enumerate(scenes):
        others = scenes[index + 1 :] + scenes[:index]
        for answer, give in ANSWERS.items():
            got = give(scene, others)
            if got is None:
                continue
            reason = why_rejected(scene.settled(got), scene.truth, tolerance)
            where = f"trial {scene.context.spec.trial}, {reason}" if reason else None
            found[answer] = found.get(answer) or where
    return found


def why_rejected(got: Outputs, truth: Outputs, tolerance: Tolerance) -> str | None:
    if len(got) != len(truth):
        return f"{len(got)} outputs instead of {len(truth)}"
    for index, (mine, expected) in enumerate(zip(got, truth, strict=True)):
        if mine.shape != expected.shape:
            return f"output {index}: shape {list(mine.shape)}, not {list(expected.shape)}"
        found = compare(mine, expected, tolerance)
        if not found.ok:
            worst = f", up to {found.max_error:.3g} tolerances" if found.max_error else ""
            return f"output {index}: {found.mismatched} of {found.elements} wrong{worst}"
    return None


def _scenes(rank: int, world_size: int, setting: Setting) -> list[Scene]:
    module, profile = problems.load(setting.name), setting.profile
    problem, size = module.problem, module.problem.sizes[setting.size]
    groups = mesh_groups(problem.mesh, module.dims(size.m, size.n, world_size), rank, world_size)
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
            device=torch.device("cpu"),
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
        truth = call(module.oracle, module.problem, mapped(inputs, widened), groups)
        if module.keys is not None:
            keys = module.keys(*arguments(mapped(inputs, widened), groups))
    return Scene(
        module=module, context=context, inputs=inputs, groups=groups, truth=truth, keys=keys
    )


def _finding(profile: str, answer: str, reasons: Mapping[str, list[str | None]]) -> Finding:
    """`reasons` holds, for every dtype, why each rank rejects the answer, "" where it is none."""
    honest = answer in HONEST
    if all(reason == "" for by_rank in reasons.values() for reason in by_rank):
        why = "does not apply"
        return Finding(profile=profile, answer=answer, honest=honest, accepted=None, why=why)
    verdicts = {dtype: not any(by_rank) for dtype, by_rank in reasons.items()}
    accepted = all(verdicts.values()) if honest else any(verdicts.values())
    told = next(d for d, ok in verdicts.items() if ok is accepted)
    why = f"{told}: every trial, every rank"
    if not accepted:
        rank, reason = next((r, text) for r, text in enumerate(reasons[told]) if text)
        why = f"{told}, rank {rank}, {reason}"
    return Finding(profile=profile, answer=answer, honest=honest, accepted=accepted, why=why)
