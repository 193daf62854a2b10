"""Screen a problem with trivial answers, to see what its inputs and tolerance let pass.

Wrong answers that cost little must be rejected, honest ones that only round differently accepted.
`hardened` compares with the float64 oracle; `upstream` with the reference itself and PKB's
atol = rtol = 1e-2, as PKB does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.audit.answers import HONEST, answers
from problems.audit.scene import Scene
from problems.comparison import compare
from problems.context import RankContext
from problems.running.calls import Inputs, Outputs, call, drawn, keys_of_ties, true_answer
from problems.running.mesh import mesh_groups
from problems.running.ranks import RankFailure, RankPool
from problems.spec import Tolerance
from problems.trials import TrialSpec, correctness_trials

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


Outcomes = Mapping[str, Outcome]  # by variant, "" where there is one


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
    ranks: RankPool,
    name: str,
    profile: str,
    *,
    size: str = "tiny",
    secret: bytes = b"screen",
    only_honest: bool = False,
) -> list[Finding]:
    """Try every answer on every rank in every trial, in each of DTYPES; return a finding each.

    A wrong answer that raises is rejected for it, and not tried again: the ranks, of which some may
    still wait for it, are ended, and the next answer gets new ones. Raises RankFailure otherwise,
    and where a GPU had no memory, which rejects nothing.
    """
    tried = HONEST if only_honest else answers(problems.load(name), profile)
    found: dict[str, dict[str, list[Outcomes]]] = {answer: {} for answer in tried}
    failed: set[str] = set()
    for dtype in DTYPES[profile]:
        setting = Setting(
            name=name, profile=profile, size=size, dtype=dtype, secret=secret, device=ranks.device
        )
        ranks.run(_prepare, setting)
        for answer in [answer for answer in found if answer not in failed]:
            try:
                found[answer][dtype] = ranks.run(outcomes_on_rank, setting, answer)
            except RankFailure as failure:
                if answer in HONEST or "OutOfMemoryError" in str(failure):
                    raise
                why = f"it fails: {str(failure).strip().splitlines()[-1]}"
                found[answer][dtype] = [{"": Outcome(error=inf, why=why)}] * ranks.world_size
                failed.add(answer)
    ranks.run(_forget)
    return [finding_of(profile, answer, by_dtype) for answer, by_dtype in found.items()]


def _prepare(rank: int, world_size: int, setting: Setting) -> None:
    _scenes.cache_clear()  # before the next ones are made: at large sizes there is no room for both
    _scenes(rank, world_size, setting)


def _forget(rank: int, world_size: int) -> None:
    _scenes.cache_clear()  # ranks of another number need the room


def outcomes_on_rank(rank: int, world_size: int, setting: Setting, answer: str) -> Outcomes:
    """Return this rank's outcome of every variant of an answer, over all trials in which it is
    one."""
    scenes = _scenes(rank, world_size, setting)
    module = scenes[0].module
    found: dict[str, Outcome] = {}
    for index, scene in enumerate(scenes):
        given = answers(module, setting.profile)[answer](
            scene, scenes[index + 1 :] + scenes[:index]
        )
        variants = given if isinstance(given, dict) else {} if given is None else {"": given}
        for variant, got in variants.items():
            seen = outcome(scene.settled(got), scene.truth, scene.tolerances)
            if seen.why:
                seen = replace(seen, why=f"trial {scene.context.spec.trial}, {seen.why}")
            found[variant] = found.get(variant, Outcome()).worse_of(seen)
    return found


def outcome(got: Outputs, truth: Outputs, tolerances: Sequence[Tolerance]) -> Outcome:
    """Compare all outputs of one call, each by its tolerance."""
    if len(got) != len(truth):
        return Outcome(error=inf, rms=inf, why=f"{len(got)} outputs instead of {len(truth)}")
    worst = Outcome()
    for index, (mine, expected) in enumerate(zip(got, truth, strict=True)):
        if mine is expected:  # put there by a wrong answer for some other output
            continue
        worst = worst.worse_of(_output_outcome(index, mine, expected, tolerances[index]))
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


@lru_cache(maxsize=1)
def _scenes(rank: int, world_size: int, setting: Setting) -> list[Scene]:
    return [scene_on_rank(rank, world_size, setting, spec) for spec in trials_of(setting)]


def trials_of(setting: Setting) -> tuple[TrialSpec, ...]:
    """Return the trials in which answers are tried."""
    problem, profile = problems.load(setting.name).problem, setting.profile
    return correctness_trials(problem, setting.size, profile, TRIALS[profile], setting.secret)


def scene_on_rank(rank: int, world_size: int, setting: Setting, spec: TrialSpec) -> Scene:
    """Return this rank's inputs of a trial, with their truth. All ranks call it."""
    module = problems.load(setting.name)
    dims = module.dims(spec.m, spec.n, world_size)
    groups = mesh_groups(module.problem.mesh, dims, rank, world_size)
    device = torch.device("cpu")
    if setting.device == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    how = {"secret": setting.secret, "dtype": getattr(torch, setting.dtype), "device": device}
    context, inputs = drawn(module, spec, rank, world_size, profile=setting.profile, **how)
    return scene_of(module, context, inputs, groups)


def scene_of(
    module: ProblemModule,
    context: RankContext,
    inputs: Inputs,
    groups: Mapping[str, ProcessGroup],
) -> Scene:
    """Return a trial with its truth: the oracle's, or under `upstream` the reference's answer."""
    if context.profile == "upstream":
        named = [("", t) for t in call(module.reference, module.problem, inputs, groups)]
    else:
        named = true_answer(module, inputs, groups)
    settles = module.problem.settles(context.profile)
    keys = keys_of_ties(module, inputs, groups) if settles else ()
    dtype = str(context.dtype).removeprefix("torch.")
    return Scene(
        module=module,
        context=context,
        inputs=inputs,
        groups=groups,
        truth=tuple(tensor for _, tensor in named),
        tolerances=tuple(module.problem.tolerance(context.profile, dtype, n) for n, _ in named),
        keys=keys,
    )


def finding_of(profile: str, answer: str, outcomes: Mapping[str, Sequence[Outcomes]]) -> Finding:
    """Judge an answer by each rank's outcomes for every dtype; None where it is none anywhere."""
    honest = answer in HONEST
    variants = {dtype: _on_all_ranks(by_rank) for dtype, by_rank in outcomes.items()}
    cheapest = {dtype: min(found.values(), key=_cost) for dtype, found in variants.items() if found}
    accepted, why = None, "does not apply"
    if cheapest:
        passed = {dtype: found.why is None for dtype, found in cheapest.items()}
        accepted = all(passed.values()) if honest else any(passed.values())
        told = next(dtype for dtype, ok in passed.items() if ok is accepted)
        right = [variant for variant, found in variants[told].items() if variant and not found.why]
        everywhere = f"{'; '.join(right)}{': ' if right else ''}every trial, every rank"
        why = f"{told}, {cheapest[told].why or everywhere}"
    errors = {dtype: found.error for dtype, found in cheapest.items()}
    return Finding(
        profile=profile,
        answer=answer,
        honest=honest,
        accepted=accepted,
        why=why,
        errors=errors,
        rms_errors={dtype: found.rms for dtype, found in cheapest.items()},
    )


def _on_all_ranks(by_rank: Sequence[Outcomes]) -> dict[str, Outcome]:
    """Return the worst outcome of every variant that changes anything on some rank."""
    found: dict[str, Outcome] = {}
    for rank, outcomes in enumerate(by_rank):
        for variant, seen in outcomes.items():
            told = f"{variant}: " if variant else ""
            why = seen.why and f"{told}rank {rank}, {seen.why}"
            found[variant] = found.get(variant, Outcome()).worse_of(replace(seen, why=why))
    return found


def _cost(outcome: Outcome) -> tuple[bool, float]:
    return outcome.why is not None, outcome.error
