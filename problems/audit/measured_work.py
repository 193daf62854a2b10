"""Measure how much less work timed calls need than a plain call, whose work is `cost`.

Options and ragged lengths differ from call to call, so a bound on a mean time needs the mean work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode

import problems
from problems.audit.rank_rules import socket_bytes
from problems.running.calls import call, drawn
from problems.running.mesh import mesh_groups
from problems.running.ranks import RankFailure, RankPool
from problems.trials import TrialSpec, plain_trial, timed_trial
from problems.values import tensors

CALLS = 16
WORLD_SIZES, TIMEOUT_S = (2, 4), 600.0
SECRET = b"work"

Work = tuple[float, float, float]  # bytes received, floating-point operations, bytes in memory


def measured(names: Sequence[str]) -> Iterator[tuple[str, float | RankFailure]]:
    """Yield slug and share of each problem, rounded down to 0.01, or how its ranks failed."""
    for name in names:
        slug = problems.load(name).slug
        try:
            yield slug, math.floor(100 * min(_share(name, size) for size in WORLD_SIZES)) / 100
        except RankFailure as failure:
            yield slug, failure


def measured_share(ranks: RankPool, name: str) -> float:
    """Return the mean work of timed calls over that of a plain call: the least of all kinds."""
    by_rank = ranks.run(work_on_rank, name)
    busiest = [
        [max(kind) for kind in zip(*calls, strict=True)] for calls in zip(*by_rank, strict=True)
    ]
    return least_share(busiest)


def _share(name: str, world_size: int) -> float:
    with RankPool(world_size, timeout_s=TIMEOUT_S) as ranks:
        return measured_share(ranks, name)


def least_share(busiest: Sequence[Sequence[float]]) -> float:
    """Return that share of the busiest rank's work: in a plain call, then in each timed call.

    Kinds of work that the plain call does not need are left out."""
    shares = [fmean(timed) / plain for plain, *timed in zip(*busiest, strict=True) if plain]
    return float(min([1.0, *shares]))


def work_on_rank(rank: int, world_size: int, name: str) -> list[Work]:
    """Return this rank's work in a plain call, then in each timed call. All ranks call it."""
    problem = problems.load(name).problem
    timed = [timed_trial(problem, "tiny", trial, SECRET) for trial in range(CALLS)]
    specs = [plain_trial(problem, "tiny"), *timed]
    return [_work(rank, world_size, name, spec) for spec in specs]


def _work(rank: int, world_size: int, name: str, spec: TrialSpec) -> Work:
    module = problems.load(name)
    dims = module.dims(spec.m, spec.n, world_size)
    groups = mesh_groups(module.problem.mesh, dims, rank, world_size)
    _, inputs = drawn(module, spec, rank, world_size, secret=SECRET)
    dist.barrier()
    _, began = socket_bytes()
    dist.barrier()  # no rank calls before every rank has read its counters
    with FlopCounterMode(display=False) as counter:
        outputs = call(module.reference, module.problem, inputs, groups)
    dist.barrier()
    _, ended = socket_bytes()
    given = [tensor for value in inputs.values() for tensor in tensors(value)]
    touched = sum(tensor.nbytes for tensor in (*given, *outputs))
    return ended - began, counter.get_total_flops(), touched
