"""Where the time of evaluations on GPUs goes: `python benchmarks/evaluator_speed.py OUT.json`.

Method: kernels of every kind are judged one after the other by forks of one warm server, as in a
worker, with every check on; wall seconds of `evaluate` and of its phases. With `--references` the
submissions are the references of all problems (or of `--only`), and the sum of their walls is what
judging all of them takes. What no judge can avoid is measured beside it: a sandbox that does
nothing, one that imports torch, and one whose ranks join by NCCL. OUT.json holds what is known so
far; `--done` completes an earlier one; no kernel is started when the budget is used.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from provenance import provenance
from reports_file import REFERENCES, append, by_hand

import problems
from evaluator.evaluate import evaluate
from evaluator.host.host import Host, host_for
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.messages.job import Backend, Device, Dtype, Job, limits_of
from evaluator.messages.report import Report
from evaluator.sandbox import sandbox
from tests.evaluator.kernel_files import named, reference_source

KINDS = {
    "pytorch": "nccl_all_reduce",
    "symmetric memory": "symmetric_one_shot",
    "triton": "triton_peer_sum",
    "cuda, published": "cuda_peer_gather",
    "cuda, load_inline": "cuda_inline_gather",
}
JOIN = """
import os
import torch
from problems.mesh import join_world
for rank in range({world_size}):
    if os.fork() == 0:
        join_world("cuda", "/tmp/store", rank, {world_size})
        torch.distributed.barrier()
        os._exit(0)
for rank in range({world_size}):
    os.wait()
"""
KEPT = ("verdict", "message", "cause", "evidence", "flags", "phase_s", "panel_s", "floors", "gpus")
KEPT_TIMES = ("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high", "empty_us")


def floor_s(host: Host, world_size: int) -> dict[str, float]:
    """Seconds that sandboxes take that do almost nothing; medians of three."""
    programs = {
        "sandbox": "pass",
        "sandbox and import": "import torch, torch.distributed",
        "sandbox, import and NCCL": JOIN.format(world_size=world_size),
    }
    return {
        name: round(statistics.median(_sandbox_s(host, code) for _ in range(3)), 3)
        for name, code in programs.items()
    }


def _sandbox_s(host: Host, code: str) -> float:
    null = os.open(os.devnull, os.O_RDWR)
    began = time.perf_counter()
    box = sandbox.launch(
        ["-c", code],
        limits=limits_of(Device.CUDA),
        settings=host.settings,
        fds=[],
        output_fd=null,
        devices=host.device_files,
    )
    box.process.wait()
    seconds = time.perf_counter() - began
    box.kill()
    os.close(null)
    return seconds


def jobs(given: argparse.Namespace) -> Iterator[tuple[str, Job]]:
    """The kernels of every kind, or the references, by name."""
    only = [word for word in given.only.split(",") if word]
    if not given.references:
        for kind, name in KINDS.items():
            if not only or kind in only:
                yield kind, replace(named("gpu/honest", name).job, world_size=given.world_size)
        return
    for name in [problems.find(text) for text in only] or problems.names():
        yield (
            name.partition(".")[2],
            Job(
                problem=name.partition(".")[2],
                source=reference_source(name),
                backend=Backend.PYTORCH,
                world_size=given.world_size,
                size="standard",
                dtype=Dtype.BFLOAT16,
                device=Device.CUDA,
                limits=limits_of(Device.CUDA),
            ),
        )


def judged(job: Job, prefork: PreforkServer, keep: Callable[[Report], None]) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        found = evaluate(job, prefork=prefork)
        report = encode(found)
    except Exception as error:  # noqa: BLE001 - one kernel's failure must not hide the others
        failed = f"{type(error).__name__}: {str(error)[-1000:]}"
        return {"wall_s": round(time.perf_counter() - began, 2), "failed": failed}
    wall_s = time.perf_counter() - began
    keep(found)
    timing = report["timing"] or {}
    return {
        "wall_s": round(wall_s, 2),
        **{key: report[key] for key in KEPT},
        **{key: timing.get(key) for key in KEPT_TIMES},
        "mechanisms": sorted({found["tag"] for found in report["mechanisms"]}),
    }


def keeper(given: argparse.Namespace, name: str, job: Job) -> Callable[[Report], None]:
    """What puts a report into the file of `--reports`, if there is to be one."""
    if given.reports is None:
        return lambda report: None
    author, attempt = REFERENCES, 1
    if not given.references:
        author, attempts = by_hand()
        attempt = attempts[named("gpu/honest", KINDS[name]).path]
    return lambda report: append(given.reports, author, attempt, job, report)


def main() -> None:
    given = _arguments()
    began = time.monotonic()
    results: dict[str, Any] = {}
    if given.done is not None:
        results = json.loads(given.done.read_text())["kernels"]
    wanted = list(jobs(given))
    document = {"provenance": provenance(), "world_size": given.world_size, "kernels": results}
    if not given.references:
        document["floor_s"] = floor_s(host_for(wanted[0][1]), given.world_size)
        for name, seconds in document["floor_s"].items():
            print(f"{name:<40} {seconds:6.2f} s", flush=True)
    with PreforkServer(warm=True) as prefork:
        prefork.start()
        for name, job in wanted:
            if name in results or time.monotonic() - began > given.budget_s:
                continue
            results[name] = judged(job, prefork, keeper(given, name, job))
            print(_line(name, results[name]), flush=True)
            given.out.write_text(json.dumps(document, indent=1) + "\n")
    total_s = sum(result["wall_s"] for result in results.values())
    ok = sum(result.get("verdict") == "ok" for result in results.values())
    print(f"{len(results)} of {len(wanted)} judged, {ok} ok, {total_s:.0f} s in all")


def _line(name: str, result: dict[str, Any]) -> str:
    phases = " ".join(f"{k} {v:.2f}" for k, v in result.get("phase_s", {}).items())
    speed = f"{result['speedup']:.2f}x" if result.get("speedup") else ""
    told = result.get("failed") or result["verdict"]
    why = "" if result.get("verdict") == "ok" else str(result.get("message", ""))[:200]
    return f"{name:<40} {result['wall_s']:6.2f} s  {told} {speed} {why} {phases}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--world-size", type=int, default=4, help="ranks of the kernels")
    parser.add_argument("--references", action="store_true", help="judge references as submissions")
    parser.add_argument("--only", default="", help="problems, or kinds, separated by commas")
    parser.add_argument("--budget-s", type=float, default=540.0, help="start none after this long")
    parser.add_argument("--done", type=Path, help="an earlier result to complete")
    parser.add_argument("--reports", type=Path, help="also add lines for import_reports: .jsonl.gz")
    return parser.parse_args()


if __name__ == "__main__":
    main()
