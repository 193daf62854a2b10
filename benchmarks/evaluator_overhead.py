"""Where the time of one CPU evaluation goes: `python benchmarks/evaluator_overhead.py [--runs 5]`.

Method: judge an honest PyTorch all-reduce (problem 1, tiny, W = 2, float32, hardened) several times
on an otherwise idle machine and take medians. The floor is what no judge can avoid here: three
processes importing torch at once (submission, reference, judge), and W ranks joining a gloo group;
it is measured in the same session, without our code. Overhead = wall - floor; it includes every
trial and every timed call.
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

KERNEL = """\
import torch.distributed as dist


def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""
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
    walls: list[float] = []
    phases: dict[str, list[float]] = {}
    for _ in range(runs):
        began = time.perf_counter()
        report = evaluate(Job(problem="allreduce", source=KERNEL, world_size=WORLD_SIZE))
        walls.append(time.perf_counter() - began)
        assert report.verdict is Verdict.OK, report.message
        for phase, seconds in report.phase_s.items():
            phases.setdefault(phase, []).append(seconds)
    imports = statistics.median(import_s(3) for _ in range(runs))
    joins = statistics.median(gloo_s() for _ in range(runs))
    wall = statistics.median(walls)
    print(f"wall                        {wall:6.2f} s  (median of {runs})")
    for phase, samples_s in phases.items():
        print(f"  {phase:<25} {statistics.median(samples_s):6.2f} s")
    print(f"floor: three torch imports  {imports:6.2f} s")
    print(f"floor: gloo group of {WORLD_SIZE}      {joins:6.2f} s")
    print(f"judge's own overhead        {wall - imports - joins:6.2f} s")


if __name__ == "__main__":
    main()
