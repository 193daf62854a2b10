"""Calls of house kernels with the judge's inputs, in ranks that no judge watches."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import problems
from evaluator.sandbox.sandbox import REPOSITORY
from problems.spec import Size
from tests.evaluator.house_files import HouseKernel

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

    from problems.spec import Problem
    from problems.trials import TrialSpec

IMPORTED = str(REPOSITORY / "evaluator" / "compat")  # what ranks have beside their own
MIDDLE = Size(m=768, n=512)  # so large that four ranks save bytes, and no exchange
SECRET, TRIALS = b"house calls", 6  # the last two of six trials have hidden shapes


@dataclass(frozen=True, kw_only=True)
class Place:
    """A rank that has joined the others, and what its inputs are like."""

    rank: int
    ranks: int
    device: torch.device
    size: str
    dtype: str = "bfloat16"


class Pointer(NamedTuple):
    """What Triton's compiler looks at in a tensor."""

    dtype: torch.dtype
    is_aligned: bool


class Launch(NamedTuple):
    """A launch of a file's kernel. Arguments are as given, tensors as Pointers."""

    path: Path
    kernel: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def loaded(kernel: HouseKernel) -> ModuleType:
    """Run a kernel's file as a module. Some make their memory then: collective."""
    spec = importlib.util.spec_from_file_location(kernel.path.stem, kernel.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def calls(kernel: HouseKernel, place: Place, trials: slice) -> Iterator[object]:
    """Call a kernel back to back, with the inputs of some trials of a hardened run; yield each
    answer."""
    from problems.calls import call

    problem, given = inputs(kernel, place, trials)
    solution = loaded(kernel).solution
    for one, groups in given:
        yield call(solution, problem, one, groups)


def inputs(
    kernel: HouseKernel, place: Place, trials: slice
) -> tuple[Problem, list[tuple[dict[str, object], Mapping[str, ProcessGroup]]]]:
    """Return a kernel's problem, and inputs and groups of some trials of a hardened run."""
    return made(kernel, place, specs_of(kernel, place)[trials])


def specs_of(kernel: HouseKernel, place: Place) -> tuple[TrialSpec, ...]:
    """Return the trials of a hardened run, those of hidden shapes last."""
    from problems.trials import correctness_trials

    problem = problems.load(problems.find(kernel.slug)).problem
    sized = replace(problem, sizes={**problem.sizes, "middle": MIDDLE})
    return correctness_trials(sized, place.size, "hardened", TRIALS, SECRET)


def made(
    kernel: HouseKernel, place: Place, specs: Iterable[TrialSpec]
) -> tuple[Problem, list[tuple[dict[str, object], Mapping[str, ProcessGroup]]]]:
    """Return a kernel's problem, and inputs and groups of these trials."""
    import torch

    from problems.context import RankContext
    from problems.mesh import mesh_groups

    problem = problems.load(problems.find(kernel.slug))
    found = []
    for spec in specs:
        dims = problem.dims(spec.m, spec.n, place.ranks)
        context = RankContext(
            rank=place.rank,
            world_size=place.ranks,
            number=kernel.number,
            profile="hardened",
            secret=SECRET,
            dtype=getattr(torch, place.dtype),
            device=place.device,
            spec=spec,
        )
        groups = mesh_groups(problem.problem.mesh, dims, place.rank, place.ranks)
        found.append((problem.make_inputs(context, dims), groups))
    return problem.problem, found
