"""Every reference on real GPUs with NCCL: right against its oracle, and how long a call takes.

`python benchmarks/references_on_gpus.py OUT.json [problem ...] [--hardware h200x4]`. Method: W
spawned ranks, one GPU each. Per problem, dtype and profile, trials of standard size are compared
with the oracle (computed with NCCL in float64). The bfloat16 reference is then timed in bursts of
16 calls, back to back, over 16 fresh inputs in another order each time: CUDA events around a burst,
after a barrier; the slowest rank's time over 16 counts; median and quartiles over at least 5 bursts
and half a second. Arguments that a call changes are restored before a burst, untimed.
With problems named, results of others that OUT.json holds already are kept.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import problems
from problems import ProblemModule
from problems.audit.screen import outcome
from problems.running.calls import call, drawn, keys_of_ties, mapped, true_answer
from problems.running.mesh import arguments, mesh_groups
from problems.sources import behaviour
from problems.trials import TrialSpec, correctness_trials, timed_trial
from problems.values import tensors

SIZE, SECRET = "standard", b"benchmark"
TRIALS, BURST, WARMUP_BURSTS, LEAST_BURSTS, MOST_BURSTS, LEAST_S = 6, 16, 2, 5, 200, 0.5
POOL_BYTES = 32 << 30


def contexts(
    module: ProblemModule, specs: list[TrialSpec], dtype: torch.dtype, profile: str
) -> list[dict[str, object]]:
    """Inputs of this rank for every trial."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    how = {"secret": SECRET, "dtype": dtype, "device": torch.device("cuda", rank)}
    return [drawn(module, spec, rank, world_size, profile=profile, **how)[1] for spec in specs]


def largest_error(
    module: ProblemModule, dtype: torch.dtype, profile: str, groups: dict[str, Any]
) -> float:
    """The reference's largest error in units of the tolerance; infinite where it has no unit."""
    problem = module.problem
    dtype_name = str(dtype).removeprefix("torch.")
    specs = list(correctness_trials(problem, SIZE, profile, TRIALS, SECRET))
    worst = 0.0
    for spec in specs:
        (inputs,) = contexts(module, [spec], dtype, profile)
        named = true_answer(module, inputs, groups)
        truth = tuple(t for _, t in named)
        tolerances = [problem.tolerance(profile, dtype_name, name) for name, _ in named]
        got = call(module.reference, problem, inputs, groups)
        if module.settle is not None:
            got = module.settle(got, truth, keys_of_ties(module, inputs, groups))
        worst = max(worst, outcome(got, truth, tolerances).error)
    return worst


def event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def burst_us(module: ProblemModule, pool: list[dict[str, object]], groups: dict[str, Any]) -> float:
    """The slowest rank's time of one burst, per call."""
    fresh = [mapped(inputs, torch.clone) if module.problem.mutates else inputs for inputs in pool]
    calls = [list(arguments(inputs, groups)) for inputs in fresh]
    began, ended = event(), event()
    dist.barrier()
    torch.cuda.synchronize()
    began.record()
    for given in calls:
        module.reference(*given)
    ended.record()
    torch.cuda.synchronize()
    slowest = torch.tensor(began.elapsed_time(ended) * 1e3 / len(calls), device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest)


def input_pool(module: ProblemModule) -> list[dict[str, object]]:
    """As many fresh inputs as a burst has calls, or as POOL_BYTES hold; then some come again."""
    specs = [timed_trial(module.problem, SIZE, 1000 + call, SECRET) for call in range(BURST)]
    pool = contexts(module, specs[:1], torch.bfloat16, "hardened")
    nbytes = sum(t.nbytes for value in pool[0].values() for t in tensors(value))
    count = min(BURST, max(1, POOL_BYTES // max(1, nbytes)))
    pool += contexts(module, specs[1:count], torch.bfloat16, "hardened")
    return [pool[index % count] for index in range(BURST)]


def timing(module: ProblemModule, groups: dict[str, Any]) -> dict[str, Any]:
    pool = input_pool(module)
    order = random.Random(0)
    samples: list[float] = []
    for _ in range(WARMUP_BURSTS):
        burst_us(module, pool, groups)
    while len(samples) < LEAST_BURSTS or sum(samples) * BURST < LEAST_S * 1e6:
        order.shuffle(pool)
        samples.append(burst_us(module, pool, groups))
        if len(samples) == MOST_BURSTS:
            break
    low, median, high = statistics.quantiles(samples, n=4)
    return {
        "us": round(median, 2),
        "quartiles_us": [round(low, 2), round(high, 2)],
        "bursts": len(samples),
    }


def measure(name: str) -> dict[str, Any]:
    module = problems.load(name)
    size = module.problem.sizes[SIZE]
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dims = module.dims(size.m, size.n, world_size)
    groups = dict(mesh_groups(module.problem.mesh, dims, rank, world_size))
    torch.cuda.reset_peak_memory_stats()
    errors = {
        f"{profile} {dtype}".replace("torch.", ""): largest_error(module, dtype, profile, groups)
        for dtype in (torch.bfloat16, torch.float32)
        for profile in ("hardened", "upstream")
    }
    timed = timing(module, groups)
    peak_mib = torch.cuda.max_memory_allocated() >> 20
    return {
        "behaviour": behaviour(module),
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "errors": errors,
        "peak_mib": peak_mib,
        **timed,
    }


def joined(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The worst rank counts; times are the same on all."""
    failed = [own for own in results if "failure" in own]
    if failed:
        return failed[0]
    keys = results[0]["errors"]
    errors = {key: max(own["errors"][key] for own in results) for key in keys}
    told = {key: round(e, 4) if math.isfinite(e) else None for key, e in errors.items()}
    return {**results[0], "errors": told, "peak_mib": max(own["peak_mib"] for own in results)}


def provenance(world_size: int) -> dict[str, Any]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"]
    told = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return {
        "gpus": told.strip().splitlines(),
        "world_size": world_size,
        "size": SIZE,
        "dtype": "bfloat16",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),  # type: ignore[no-untyped-call]
        "nccl_settings": {k: v for k, v in sorted(os.environ.items()) if k.startswith("NCCL_")},
        "method": "benchmarks/references_on_gpus.py: CUDA events, bursts of 16 calls, median",
    }


def run_rank(rank: int, given: argparse.Namespace) -> None:
    torch.cuda.set_device(rank)
    torch.backends.cudnn.allow_tf32 = False  # float32 convolutions are float32
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571")
    dist.init_process_group(
        "nccl", rank=rank, world_size=given.world_size, device_id=torch.device("cuda", rank)
    )
    results: dict[str, Any] = {}
    if given.problem and Path(given.out).exists():
        results = json.loads(Path(given.out).read_text())["problems"]
    names = [problems.find(text) for text in given.problem] or problems.names()
    for name in names:
        began = time.monotonic()
        try:
            own: dict[str, Any] = measure(name)
        except Exception:  # noqa: BLE001 - one problem's failure must not hide the others
            own = {"failure": traceback.format_exc()[-1500:]}
        gathered: list[Any] = [None] * given.world_size
        dist.all_gather_object(gathered, own)
        slug = name.partition(".")[2]
        results[slug] = joined(gathered)
        torch.cuda.empty_cache()
        if rank == 0:
            wall_s = time.monotonic() - began
            print(f"{slug} {wall_s:.1f} s {results[slug]}", flush=True)
            document = {"hardware": given.hardware, **provenance(given.world_size)}
            Path(given.out).write_text(
                json.dumps({**document, "problems": results}, indent=1) + "\n"
            )
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("problem", nargs="*")
    parser.add_argument("--world-size", type=int, default=torch.cuda.device_count())
    parser.add_argument("--hardware", default="h200x4")
    given = parser.parse_args()
    start = torch.multiprocessing.get_context("spawn")
    ranks = [start.Process(target=run_rank, args=(r, given)) for r in range(given.world_size)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()


if __name__ == "__main__":
    main()
