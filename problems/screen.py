"""The trivial-answer screen: what a problem's inputs and tolerance let pass.

Wrong answers that cost little must be rejected, honest ones that only round differently accepted.
`hardened` compares with the float64 oracle; `upstream` with the reference itself and PKB's
atol = rtol = 1e-2, as PKB does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.calls import Inputs, call, mapped, mutated, widened
from problems.comparison import compare
from problems.context import RankContext
from problems.mesh import mesh_groups
from problems.ranks import GlooRanks
from problems.spec import Tolerance
from problems.substitutes import SplitProducts, local_only, reversed_reduction
from problems.trials import correctness_trials
from problems.values import tensors

DTYPES = ("float32", "bfloat16")
TRIALS = {"upstream": 2, "hardened": 6}

Outputs = tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`accepted`: a wrong answer passed everywhere, or an honest one did in every dtype."""

    profile: str
    answer: str
    honest: bool
    accepted: bool
    why: str

    @property
    def as_it_should_be(self) -> bool:
        return self.accepted is self.honest


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One trial on one rank: its inputs, and what an answer is compared with."""

    module: ProblemModule
    context: RankContext
    inputs: Inputs
    groups: Mapping[str, ProcessGroup]
    truth: Outputs

    def reference(self, inputs: Inputs | None = None) -> Outputs:
        used = self.inputs if inputs is None else inputs
        return call(self.module.reference, self.module.problem, used, self.groups)


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
    rejections = {}
    for dtype in DTYPES:
        setting = Setting(name=name, profile=profile, size=size, dtype=dtype, secret=secret)
        rejections[dtype] = ranks.run(rejections_on_rank, setting)
    return [
        _finding(profile, answer, {d: [r[answer] for r in by] for d, by in rejections.items()})
        for answer in ANSWERS
    ]


def rejections_on_rank(rank: int, world_size: int, setting: Setting) -> dict[str, str | None]:
    """Answer -> why this rank rejects it, None when it accepts it in all trials."""
    scenes = _scenes(rank, world_size, setting)
    tolerance = scenes[0].module.problem.tolerance(setting.profile, setting.dtype)
    found: dict[str, str | None] = dict.fromkeys(ANSWERS)
    for index, scene in enumerate(scenes):
        others = scenes[index + 1 :] + scenes[:index]
        for answer, give in ANSWERS.items():
            reason = why_rejected(give(scene, others), scene.truth, tolerance)
            if reason and not found[answer]:
                found[answer] = f"trial {scene.context.spec.trial}, {reason}"
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
        function, given = module.oracle, mapped(inputs, widened)
        if profile == "upstream":
            function, given = module.reference, inputs
        truth = call(function, problem, given, groups)
        scenes.append(
            Scene(module=module, context=context, inputs=inputs, groups=groups, truth=truth)
        )
    return scenes


def _zeros(scene: Scene, others: list[Scene]) -> Outputs:
    return tuple(torch.zeros_like(t) for t in scene.truth)


def _constant(scene: Scene, others: list[Scene]) -> Outputs:
    """The mean of another trial's answer, or its first element where that is no float."""
    return tuple(
        torch.full_like(truth, _typical(other).item())
        for truth, other in zip(scene.truth, others[0].truth, strict=True)
    )


def _typical(values: Tensor) -> Tensor:
    return values[values.isfinite()].mean() if values.is_floating_point() else values.flatten()[0]


def _pass_through(scene: Scene, others: list[Scene]) -> Outputs:
    given = [t for value in scene.inputs.values() for t in tensors(value)]
    outputs = scene.truth[: len(scene.truth) - len(mutated(scene.module.problem, scene.inputs))]
    answer = [
        next((t for t in given if t.shape == wanted.shape), torch.zeros_like(wanted))
        for wanted in outputs
    ]
    return (*answer, *mutated(scene.module.problem, scene.inputs))


def _local_only(scene: Scene, others: list[Scene]) -> Outputs:
    with local_only():
        return scene.reference()


def _skip_one_rank(scene: Scene, others: list[Scene]) -> Outputs:
    """The last rank contributes zeros in place of everything that is its own."""
    context = scene.context
    if context.rank != context.world_size - 1:
        return scene.reference()
    neighbour = replace(context, rank=context.rank - 1, _streams={}, _choices=count())
    dims = scene.module.dims(context.spec.m, context.spec.n, context.world_size)
    theirs = scene.module.make_inputs(neighbour, dims)
    shared = {name for name, value in scene.inputs.items() if _equal(value, theirs[name])}
    zeroed = mapped(scene.inputs, torch.zeros_like)
    return scene.reference(
        {name: scene.inputs[name] if name in shared else zeroed[name] for name in scene.inputs}
    )


def _equal(one: object, other: object) -> bool:
    pairs = list(zip(tensors(one), tensors(other), strict=True))
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)


def _another_trial(scene: Scene, others: list[Scene]) -> Outputs:
    """The answer of another trial of these shapes; zeros where there is none."""
    shapes = [t.shape for t in scene.truth]
    for other in others:
        if [t.shape for t in other.truth] == shapes:
            return other.truth
    return _zeros(scene, others)


def _stale_rows(scene: Scene, others: list[Scene]) -> Outputs:
    """Right but for the last 1 % of rows, which hold another trial's values, or zeros."""
    mixed = []
    pairs = zip(scene.truth, _another_trial(scene, others), strict=True)
    for truth, stale in pairs:
        rows = truth.clone().reshape(-1, truth.shape[-1] if truth.dim() > 1 else 1)
        first = len(rows) - max(1, len(rows) // 100)
        rows[first:] = stale.reshape(rows.shape)[first:]
        mixed.append(rows.view(truth.shape))
    return tuple(mixed)


def _reference(scene: Scene, others: list[Scene]) -> Outputs:
    return scene.reference()


def _float64_then_cast(scene: Scene, others: list[Scene]) -> Outputs:
    exact = call(
        scene.module.oracle,
        scene.module.problem,
        mapped(scene.inputs, widened),
        scene.groups,
    )
    return tuple(
        wide.to(narrow.dtype) for wide, narrow in zip(exact, scene.reference(), strict=True)
    )


def _reversed_reduction(scene: Scene, others: list[Scene]) -> Outputs:
    with reversed_reduction():
        return scene.reference()


def _split_products(scene: Scene, others: list[Scene]) -> Outputs:
    with SplitProducts():
        return scene.reference()


Answer = Callable[[Scene, list[Scene]], Outputs]

WRONG: Mapping[str, Answer] = {
    "zeros": _zeros,
    "constant": _constant,
    "pass-through": _pass_through,
    "local-only": _local_only,
    "skip-one-rank": _skip_one_rank,
    "another-trial": _another_trial,
    "stale-rows": _stale_rows,
}
HONEST: Mapping[str, Answer] = {
    "reference": _reference,
    "float64-then-cast": _float64_then_cast,
    "reversed-reduction": _reversed_reduction,
    "split-products": _split_products,
}
ANSWERS = {**WRONG, **HONEST}


def _finding(profile: str, answer: str, reasons: Mapping[str, list[str | None]]) -> Finding:
    """`reasons` holds, for every dtype, why each rank rejects the answer."""
    honest = answer in HONEST
    verdicts = {dtype: not any(by_rank) for dtype, by_rank in reasons.items()}
    accepted = all(verdicts.values()) if honest else any(verdicts.values())
    told = next(d for d, ok in verdicts.items() if ok is accepted)
    why = f"{told}: every trial, every rank"
    if not accepted:
        rank, reason = next((r, text) for r, text in enumerate(reasons[told]) if text)
        why = f"{told}, rank {rank}, {reason}"
    return Finding(profile=profile, answer=answer, honest=honest, accepted=accepted, why=why)
