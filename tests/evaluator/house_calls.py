"""Calls of house kernels with the judge's inputs, in ranks that no judge watches."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    from problems.context import RankContext
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
    from problems.running.calls import call

    problem, given = inputs(kernel, place, trials)
    solution = loaded(kernel).solution
    for one, groups in given:
        yield call(solution, problem, one, groups)


def inputs(
    kernel: HouseKernel, place: Place, trials: slice
) -> tuple[Problem, list[tuple[dict[str, object], Mapping[str, ProcessGroup]]]]:
    """Return a kernel's problem, and inputs and groups of some trials of a hardened run."""
    problem = problems.load(problems.find(kernel.slug)).problem
    found = made(kernel, place, specs_of(kernel, place)[trials])
    return problem, [(given, groups) for _, given, groups in found]


def specs_of(kernel: HouseKernel, place: Place) -> tuple[TrialSpec, ...]:
    """Return the trials of a hardened run, those of hidden shapes last."""
    from problems.trials import correctness_trials

    problem = problems.load(problems.find(kernel.slug)).problem
    sized = replace(problem, sizes={**problem.sizes, "middle": MIDDLE})
    return correctness_trials(sized, place.size, "hardened", TRIALS, SECRET)


def made(
    kernel: HouseKernel, place: Place, specs: Iterable[TrialSpec]
) -> Iterator[tuple[RankContext, dict[str, object], Mapping[str, ProcessGroup]]]:
    """Yield for each of these trials what its inputs are made from, the inputs, and groups."""
    import torch

    from problems.running.calls import drawn
    from problems.running.mesh import mesh_groups

    problem = problems.load(problems.find(kernel.slug))
    for spec in specs:
        dims = problem.dims(spec.m, spec.n, place.ranks)
        how = {"secret": SECRET, "dtype": getattr(torch, place.dtype), "device": place.device}
        groups = mesh_groups(problem.problem.mesh, dims, place.rank, place.ranks)
        yield *drawn(problem, spec, place.rank, place.ranks, **how), groups


def join(folder: str, rank: int, ranks: int, limit_s: float) -> torch.device:
    """Join other ranks on processors, and end by oneself a while after so long."""
    from evaluator.rank.symmetric_memory import put_in_place
    from problems.running.mesh import join_world

    faulthandler.dump_traceback_later(0.9 * limit_s)
    signal.alarm(int(limit_s) + 5)  # who started this may be gone
    put_in_place()
    return join_world("cpu", f"{folder}/store", rank, ranks, is_shared=True)


def what_failed(commands: Sequence[Sequence[str]], folder: str, limit_s: float) -> str:
    """Run ranks by Triton's interpreter; return what one printed that failed or took too long, or
    nothing."""
    settings = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    settings |= {"PYTHONPATH": IMPORTED, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    processes = []
    for rank, command in enumerate(commands):
        with Path(folder, f"output{rank}").open("wb") as out:
            processes.append(subprocess.Popen(command, env=settings, stdout=out, stderr=out))
    stopped = watched(processes, limit_s)
    if stopped is None:
        return ""
    printed = Path(folder, f"output{stopped}").read_text("utf-8", "replace")
    return f"rank {stopped} of {len(commands)}: {printed.strip()[-3000:]}"


def watched(processes: list[subprocess.Popen[bytes]], limit_s: float) -> int | None:
    """Wait for all; return which failed or took too long, with the others ended."""
    ends = time.monotonic() + limit_s
    try:
        while any(process.poll() is None for process in processes):
            failed = [n for n, process in enumerate(processes) if process.poll()]
            if failed or time.monotonic() > ends:
                return failed[0] if failed else 0
            time.sleep(0.05)
        return next((n for n, process in enumerate(processes) if process.returncode), None)
    finally:
        for process in processes:
            process.kill()
            process.wait()
