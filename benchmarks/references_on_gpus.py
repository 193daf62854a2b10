"""Every reference on real GPUs with NCCL: right against its oracle, and how long a call takes.

`python benchmarks/references_on_gpus.py OUT.json [--world-size 4]`. Method: W spawned ranks, one
GPU each; per problem and dtype, hardened and upstream trials of standard size are compared with the
oracle (computed with NCCL in float64); then the bfloat16 reference is timed over rotating fresh
inputs: 20 warm-up calls, 100 calls each between CUDA events with a barrier before, median per rank,
maximum over ranks. Arguments that a call changes in place are restored before it, untimed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import problems
from problems import ProblemModule
from problems.calls import call, mapped, widened
from problems.comparison import compare
from problems.context import RankContext
from problems.mesh import arguments, mesh_groups
from problems.trials import TrialSpec, correctness_trials, timed_trial

SIZE, SECRET = "standard", b"benchmark"
TRIALS, WARMUP, TIMED, POOL = 6, 20, 100, 8


def contexts(
    module: ProblemModule, specs: list[TrialSpec], dtype: torch.dtype, profile: str
) -> list[dict[str, object]]:
    """Inputs of this rank for every trial."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    return [
        module.make_inputs(
            RankContext(
                rank=rank,
                world_size=world_size,
                number=module.problem.number,
                spec=spec,
                profile=profile,
                secret=SECRET,
                dtype=dtype,
                device=torch.device("cuda", rank),
            ),
            module.dims(spec.m, spec.n, world_size),
        )
        for spec in specs
    ]


def largest_error(
    module: ProblemModule, dtype: torch.dtype, profile: str, groups: dict[str, Any]
) -> float:
    """The reference's largest error in units of the tolerance; infinite where it has no unit."""
    problem = module.problem
    tolerance = problem.tolerance(profile, str(dtype).removeprefix("torch."))
    specs = list(correctness_trials(problem, SIZE, profile, TRIALS, SECRET))
    worst = 0.0
    for inputs in contexts(module, specs, dtype, profile):
        truth = call(module.oracle, problem, mapped(inputs, widened), groups)
        for got, expected in zip(
            call(module.reference, problem, inputs, groups), truth, strict=True
        ):
            found = compare(got, expected, tolerance)
            worst = max(worst, float("inf") if found.max_error is None else found.max_error)
    return worst


def event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def median_us(module: ProblemModule, groups: dict[str, Any]) -> float:
    problem = module.problem
    specs = [timed_trial(problem, SIZE, 1000 + trial) for trial in range(POOL)]
    pool = contexts(module, specs, torch.bfloat16, "hardened")
    samples = []
    for turn in range(WARMUP + TIMED):
        inputs = pool[turn % POOL]
        if problem.mutates:
            inputs = mapped(inputs, torch.clone)
        began, ended = event(), event()
        dist.barrier()
        torch.cuda.synchronize()
        began.record()
        module.reference(*arguments(inputs, groups))
        ended.record()
        torch.cuda.synchronize()
        if turn >= WARMUP:
            samples.append(began.elapsed_time(ended) * 1e3)
    return float(statistics.median(samples))


def measure(name: str) -> dict[str, Any]:
    module = problems.load(name)
    size = module.problem.sizes[SIZE]
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dims = module.dims(size.m, size.n, world_size)
    groups = dict(mesh_groups(module.problem.mesh, dims, rank, world_size))
    result: dict[str, Any] = {"digest": module.digest}
    for dtype in (torch.bfloat16, torch.float32):
        for profile in ("hardened", "upstream"):
            key = f"{profile} {dtype}".replace("torch.", "")
            result[key] = largest_error(module, dtype, profile, groups)
    result["us"] = median_us(module, groups)
    return result


def run_rank(rank: int, world_size: int, out: str) -> None:
    torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571")
    dist.init_process_group(
        "nccl", rank=rank, world_size=world_size, device_id=torch.device("cuda", rank)
    )
    results: dict[str, Any] = {}
    for name in problems.names():
        began = time.monotonic()
        try:
            own: dict[str, Any] = measure(name)
        except Exception:  # noqa: BLE001 - one problem's failure must not hide the others
            own = {"error": traceback.format_exc()[-1500:]}
        gathered: list[Any] = [None] * world_size
        dist.all_gather_object(gathered, own)
        merged = {key: max(g.get(key, own[key]) for g in gathered) for key in own}
        results[name] = {**merged, "wall_s": round(time.monotonic() - began, 2)}
        if rank == 0:
            print(name, results[name], flush=True)
            Path(out).write_text(json.dumps(results, indent=1))
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--world-size", type=int, default=torch.cuda.device_count())
    given = parser.parse_args()
    start = torch.multiprocessing.get_context("spawn")
    ranks = [
        start.Process(target=run_rank, args=(rank, given.world_size, given.out))
        for rank in range(given.world_size)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()


if __name__ == "__main__":
    main()
