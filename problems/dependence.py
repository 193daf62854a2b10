"""Measure how much of its answer a rank cannot know without the other ranks.

A timed batch is a chain: the answer of a call opens the inputs of the next. That holds only where
the answer tells a rank what it did not know, so two things are measured with its own inputs fixed
while the other ranks' become others: the *share* of elements that move farther than a threshold
lies from the truth, and the *unknowns*, how many numbers of the others' making the answer depends
on. A rank's own inputs times one factor move everywhere and have one unknown. Elements are *usable*
that are large enough for a threshold.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

import problems
from problems import ProblemModule
from problems.calls import Inputs, mapped, true_answer, widened
from problems.comparison import rms
from problems.context import RankContext
from problems.guards import Record
from problems.health import behaviour
from problems.mesh import mesh_groups
from problems.ranks import RankFailure, RankPool
from problems.spec import Tolerance
from problems.thresholds import distances, usable
from problems.timed_work import work_share
from problems.trials import TrialSpec, timed_trial

SLOTS, REDRAWS, DIRECTIONS = 6, 2, 80
STEP, NEGLIGIBLE = 1e-6, 1e-3
SAMPLE = 4096
SECRET = b"dependence"
WORLD_SIZES, TIMEOUT_S = (2, 4), 600.0

Answers = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """Hold what the worst placed rank cannot know of an output: by dtype a share of its usable
    elements, a number of unknowns, of which no more than DIRECTIONS can be told, and the share of
    its elements that are usable."""

    shares: Mapping[str, float]
    unknowns: int
    usable: float

    def worse_of(self, other: Dependence) -> Dependence:
        return Dependence(
            shares={d: min(share, other.shares[d]) for d, share in self.shares.items()},
            unknowns=min(self.unknowns, other.unknowns),
            usable=min(self.usable, other.usable),
        )


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Hold one trial of a problem on one rank, its inputs widened."""

    module: ProblemModule
    context: RankContext
    groups: Mapping[str, ProcessGroup]
    inputs: Inputs
    known: Sequence[set[bytes]]

    def moved(self, watched: int, draw: int, share: float) -> Inputs:
        """Return inputs that are so far on the way to another draw's; those stay that the watched
        rank has too, and all that are no real numbers of the same shape."""
        if self.context.rank == watched:
            return self.inputs
        targets = iter(_visited(_drawn(self.module, self.context, draw)))

        def nearer(tensor: Tensor) -> Tensor:
            target = next(targets)
            fixed = not tensor.is_floating_point() or tensor.shape != target.shape
            if fixed or _bytes(tensor) in self.known[watched]:
                return tensor
            return tensor + share * (target - tensor)

        return mapped(self.inputs, nearer)

    def answers(self, inputs: Inputs) -> Answers:
        """Return the true outputs and changed arguments of real numbers, flat, in float64. All
        tensors of an argument are one."""
        parts: dict[str, list[Tensor]] = {}
        for name, tensor in true_answer(self.module, inputs, self.groups):
            if tensor.is_floating_point():
                parts.setdefault(name, []).append(tensor.detach().reshape(-1).double())
        return {name: torch.cat(own) for name, own in parts.items()}


def measured(names: Sequence[str]) -> Iterator[tuple[str, Record | RankFailure]]:
    """Yield slug and record (see `guards`) of each problem, or how it failed."""
    for name in names:
        try:
            yield problems.load(name).slug, _record(name)
        except RankFailure as failure:
            yield problems.load(name).slug, failure


def depends(ranks: RankPool, name: str) -> dict[str, Dependence]:
    """Return the dependence of each real output or changed argument on the worst placed rank."""
    return worst_of(ranks.run(dependence_on_rank, name))


def _record(name: str) -> Record:
    found, work = [], 1.0
    for world_size in WORLD_SIZES:
        with RankPool(world_size, timeout_s=TIMEOUT_S) as ranks:
            found.append(depends(ranks, name))
            work = min(work, work_share(ranks, name))
    outputs = {
        output: {
            "shares": {dtype: round(share, 3) for dtype, share in worst.shares.items()},
            "unknowns": worst.unknowns,
            "usable": round(worst.usable, 3),
        }
        for output, worst in worst_of(found).items()
    }
    return {
        "behaviour": behaviour(problems.load(name)),
        "world_sizes": list(WORLD_SIZES),
        "work": math.floor(100 * work) / 100,
        "outputs": outputs,
    }


def worst_of(found: Iterable[Mapping[str, Dependence]]) -> dict[str, Dependence]:
    """Merge by name. What some rank does not have tells that rank nothing, so it is left out."""
    every = list(found)
    names = [name for name in every[0] if all(name in one for one in every)]
    return {name: reduce(Dependence.worse_of, (one[name] for one in every)) for name in names}


def dependence_on_rank(rank: int, world_size: int, name: str) -> dict[str, Dependence]:
    """Return the dependence of this rank's outputs. All ranks call it, and are watched in turn."""
    module, found = problems.load(name), []
    specs = [timed_trial(module.problem, "tiny", slot, SECRET, slot) for slot in range(SLOTS)]
    stages = [_stage(rank, world_size, module, spec) for spec in specs]
    for watched in range(world_size):
        own = _dependence(stages, watched)
        found += [own] if rank == watched else []
    return found[0]


def _stage(rank: int, world_size: int, module: ProblemModule, spec: TrialSpec) -> Stage:
    """Return a trial twice as long each way as `tiny`, where rows would be few unknowns."""
    context = RankContext(
        rank=rank,
        world_size=world_size,
        number=module.problem.number,
        spec=replace(spec, m=2 * spec.m, n=2 * spec.n),
        profile="hardened",
        secret=SECRET,
        dtype=torch.float64,  # some oracles compute in what the values fit into
        device=torch.device("cpu"),
    )
    dims = module.dims(2 * spec.m, 2 * spec.n, world_size)
    groups = mesh_groups(module.problem.mesh, dims, rank, world_size)
    inputs = _drawn(module, context, 0)
    known: list[set[bytes]] = [set() for _ in range(world_size)]
    dist.all_gather_object(known, {_bytes(t) for t in _visited(inputs)})
    return Stage(module=module, context=context, groups=groups, inputs=inputs, known=known)


def _drawn(module: ProblemModule, context: RankContext, draw: int) -> Inputs:
    spec = context.spec
    dims = module.dims(spec.m, spec.n, context.world_size)
    redrawn = replace(context, draw=draw, _streams={}, _choices=count())
    return mapped(module.make_inputs(redrawn, dims), widened)


def _visited(inputs: Inputs) -> list[Tensor]:
    seen: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        seen.append(tensor)
        return tensor

    mapped(inputs, note)
    return seen


def _bytes(tensor: Tensor) -> bytes:
    return hashlib.sha256(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()).digest()


def _dependence(stages: Sequence[Stage], watched: int) -> dict[str, Dependence]:
    unknowns = _unknowns(stages[0], watched)
    return worst_of(
        {
            name: Dependence(shares=shares, unknowns=unknowns[name], usable=part)
            for name, (shares, part) in _shares(stage, watched, draw).items()
        }
        for stage in stages
        for draw in range(1, REDRAWS + 1)
    )


def _shares(stage: Stage, watched: int, draw: int) -> dict[str, tuple[dict[str, float], float]]:
    """Return by output, for each dtype, the share of usable elements that move when the others'
    inputs are others, and the share of elements that are usable."""
    before, after = stage.answers(stage.inputs), stage.answers(stage.moved(watched, draw, 1.0))
    tolerances = stage.module.problem.tolerances
    return {
        name: (
            {d: _moved_share(truth, after[name], t) for d, t in tolerances.items()},
            _usable_share(truth),
        )
        for name, truth in before.items()
        if name in after
    }


def _moved_share(truth: Tensor, other: Tensor, tolerance: Tolerance) -> float:
    """Return the share that moves past a threshold, of the elements that may have one."""
    if other.shape != truth.shape:
        return 1.0
    usual = rms(truth)
    moves = (other - truth).abs() > distances(truth, tolerance, usual)
    among = moves[usable(truth, usual)]
    return among.double().mean().item() if len(among) else 0.0


def _usable_share(truth: Tensor) -> float:
    return usable(truth, rms(truth)).double().mean().item() if len(truth) else 0.0


def _unknowns(stage: Stage, watched: int) -> dict[str, int]:
    """Return by output in how many independent directions it goes when the others' inputs do."""
    truth = stage.answers(stage.inputs)
    steps = [stage.answers(stage.moved(watched, draw, STEP)) for draw in range(1, DIRECTIONS + 1)]
    return {
        name: _rank(torch.stack([_sampled(step[name] - start) for step in steps]))
        for name, start in truth.items()
    }


def _sampled(values: Tensor) -> Tensor:
    every = max(1, len(values) // SAMPLE)
    return torch.where(values.isfinite(), values, 0.0)[::every]


def _rank(rows: Tensor) -> int:
    """Return how many directions the rows span, but for those too weak to tell."""
    strengths = torch.linalg.svdvals(rows) if rows.numel() else rows.new_zeros(1)
    return int((strengths > NEGLIGIBLE * strengths.max()).sum())
