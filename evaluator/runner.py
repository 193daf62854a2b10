"""One rank of a submission or of the reference: join the group, map the slab, call, tick.

It shares its process with the submission, so nothing here protects anything: it only makes honest
submissions work. The judge believes none of it.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import problems
from evaluator.claims import CallFault, claim_of
from evaluator.control import Command, Control
from problems.mesh import mesh_groups

if TYPE_CHECKING:
    from evaluator.spawn import RankSetup

Solution = Callable[..., object]
Groups = Mapping[str, dist.ProcessGroup]


def run_rank(setup: RankSetup, rank: int, slab_fd: int, control_fd: int) -> None:
    """Serve the judge's commands until the sandbox is killed, or claim a failure and wait."""
    control = Control(control_fd)
    stage = "import"
    try:
        control.wait_go()
        solution, groups = _join(setup, rank)
        slab = _map(slab_fd)
        control.done(0)
        stage = "call"
        slots: list[Slot] = []
        armed = False
        while True:
            command, indices = control.wait_go(armed=armed)
            armed = command is Command.CALL and not indices
            if command is Command.LOAD_PLAN:
                slots = [Slot(slab, groups, node) for node in control.read_plan()["slots"]]
                control.done(0)
                continue
            began = time.perf_counter_ns()
            for index in indices:
                slot = slots[index]
                slot.store(solution(*slot.arguments))
            control.done(time.perf_counter_ns() - began)
    except BaseException as error:  # noqa: BLE001 - a submission may raise anything
        traceback.print_exc()
        control.fail(claim_of(error, stage))
        while True:
            time.sleep(60)


def _join(setup: RankSetup, rank: int) -> tuple[Solution, Groups]:
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(setup.world_size),
        LOCAL_WORLD_SIZE=str(setup.world_size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
    )
    torch.set_num_threads(setup.threads)
    dist.init_process_group(
        "gloo", init_method=f"file://{setup.store}", rank=rank, world_size=setup.world_size
    )
    module = problems.load(setup.problem)
    dims = module.dims(setup.m, setup.n, setup.world_size)
    groups = mesh_groups(module.problem.mesh, dims, rank, setup.world_size)
    if setup.entry is None:
        return module.reference, groups
    return _load(setup.entry), groups


def _load(source: str) -> Solution:
    path = Path("/tmp", f"rank{os.environ['RANK']}", "submission.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    solution = getattr(module, "solution", None)
    if not callable(solution):
        raise CallFault("missing_entry_point", "no_solution", "the source defines no solution()")
    return solution  # type: ignore[no-any-return]


def _map(slab_fd: int) -> mmap.mmap:
    return mmap.mmap(slab_fd, os.fstat(slab_fd).st_size)


class Slot:
    """The arguments of one call and the places of its outputs, as views on the slab."""

    def __init__(self, slab: mmap.mmap, groups: Groups, node: dict[str, Any]) -> None:
        self.arguments = [_argument(slab, groups, item) for item in node["arguments"]]
        self._outputs = [_view(slab, item) for item in node["outputs"]]

    def store(self, result: object) -> None:
        """Copy what a call returned into the output places; raises CallFault where it cannot."""
        returned = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(returned) != len(self._outputs):
            raise CallFault(
                "shape_mismatch",
                "output_count",
                f"{len(returned)} outputs returned, {len(self._outputs)} expected",
            )
        for place, tensor in zip(self._outputs, returned, strict=True):
            if not isinstance(tensor, torch.Tensor):
                kind = type(tensor).__name__
                raise CallFault("runtime_error", "output_type", f"{kind} returned, not a tensor")
            if tensor.shape != place.shape:
                raise CallFault(
                    "shape_mismatch",
                    "output_shape",
                    f"shape {tuple(tensor.shape)} returned, {tuple(place.shape)} expected",
                )
            if tensor.dtype != place.dtype:
                raise CallFault(
                    "dtype_mismatch",
                    "output_dtype",
                    f"{tensor.dtype} returned, {place.dtype} expected",
                )
            place.copy_(tensor)


def _argument(slab: mmap.mmap, groups: Groups, node: dict[str, Any]) -> object:
    if "tensor" in node:
        return _view(slab, node["tensor"])
    if "items" in node:
        items = [_argument(slab, groups, item) for item in node["items"]]
        return tuple(items) if node["tuple"] else items
    if "group" in node:
        return groups[node["group"]]
    return node["value"]


def _view(slab: mmap.mmap, place: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, place["dtype"])
    shape: list[int] = place["shape"]
    count = 1
    for length in shape:
        count *= length
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    flat = torch.frombuffer(slab, dtype=dtype, count=count, offset=place["offset"])
    return flat.view(shape)
