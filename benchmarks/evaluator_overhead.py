"""Where the time of one CPU evaluation goes: `python benchmarks/evaluator_overhead.py [--runs 5]`.

Method: judge a PyTorch all-reduce (problem 1, tiny, W = 2, float32, hardened), and the same with
wrong answers, several times on an otherwise idle machine and take medians: by a judge that starts
from nothing, as on the command line, and by forks of a warm server, as in a worker. The floor is
what no judge can avoid here: two processes importing torch at once (submission, reference), and W
ranks joining a gloo group; it is measured in the same session, without our code. Overhead = wall -
floor; it includes every trial and every timed call.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evaluator import Job, Verdict
from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer

KERNEL = """\
import torch.distributed as dist


def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
WRONG = KERNEL.replace("return out", "return out * 1.01")
WORLD_SIZE = 2
IMPORT = "import torch, torch.distributed"
JOIN = """\
import os, sys, time
import torch, torch.distributed as dist
began = time.perf_counter()
pids = []
for rank in range({world_size}):
    pid = os.fork()
    if pid == 0:
        dist.init_process_group("gloo", init_method="file://{store}", rank=rank,
                                world_size={world_size})
        dist.barrier()
        os._exit(0)
    pids.append(pid)
for pid in pids:
    os.waitpid(pid, 0)
print(time.perf_counter() - began)
"""


def import_s(processes: int) -> float:
    """Wall seconds until this many Python processes at once have imported torch."""
    began = time.perf_counter()
    children = [subprocess.Popen([sys.executable, "-c", IMPORT]) for _ in range(processes)]
    for child in children:
        child.wait()
    return time.perf_counter() - began


def gloo_s() -> float:
    """Seconds for W forked ranks to join a gloo group and pass one barrier."""
    with tempfile.TemporaryDirectory() as folder:
        code = JOIN.format(world_size=WORLD_SIZE, store=f"{folder}/store")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    _show("cold, right", *_judged(runs, KERNEL, Verdict.OK, None))
    with PreforkServer(warm=True) as prefork:
        _show("warm, wrong", *_judged(runs, WRONG, Verdict.OUTPUT_MISMATCH, prefork))
        wall, phases = _judged(runs, KERNEL, Verdict.OK, prefork)
    _show("warm, right", wall, phases)
    imports = statistics.median(import_s(2) for _ in range(runs))
    joins = statistics.median(gloo_s() for _ in range(runs))
    print(f"floor: two torch imports    {imports:6.2f} s")
    print(f"floor: gloo group of {WORLD_SIZE}      {joins:6.2f} s")
    print(f"judge's own overhead        {wall - imports - joins:6.2f} s  (warm, right)")


def _judged(
    runs: int, source: str, expected: Verdict, prefork: PreforkServer | None
) -> tuple[float, dict[str, float]]:
    """Median wall seconds of an evaluation and of its phases, after one that is not counted."""
    job = Job(problem="allreduce", source=source, world_size=WORLD_SIZE)
    walls: list[float] = []
    phases: dict[str, list[float]] = {}
    for run in range(runs + 1):
        began = time.perf_counter()
        report = evaluate(job, prefork=prefork)
        assert report.verdict is expected, report.message
        if run == 0:
            continue
        walls.append(time.perf_counter() - began)
        for phase, seconds in report.phase_s.items():
            phases.setdefault(phase, []).append(seconds)
    return statistics.median(walls), {k: statistics.median(v) for k, v in phases.items()}


def _show(name: str, wall: float, phases: dict[str, float]) -> None:
    print(f"{name:<27} {wall:6.2f} s")
    for phase, seconds in phases.items():
        print(f"  {phase:<25} {seconds:6.2f} s")


if __name__ == "__main__":
    main()
