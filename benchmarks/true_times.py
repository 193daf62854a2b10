"""How true judged times are: `python benchmarks/true_times.py OUT.json [--device cuda] [--runs 3]`.

Method: the same kernels of problem 1 are judged, with every guard on, and called by a plain process
beside the judge: `--calls` calls back to back between two synchronisations, median of 300 times
after 500 calls to warm up. The judged process does the same once, in an untimed call of its warm-up
("inside"): so the same loop is seen with and without all that the judge puts around a process. One
rank each, which no run may have: what a call takes is then the kernel's own, and nobody waits for a
peer. The reference of the problem (clone and all-reduce) is
judged in every run; ratios are of the reference to the kernel. Acceptance on a GPU: a judged call
is within 5 us or 5 % of the plain one, whichever is larger; a ratio within 10 %; the interval of
the reference against itself within 5 % of 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from provenance import provenance

import problems
from evaluator.evaluate import evaluate
from evaluator.judge import prefork as server
from evaluator.judge.prefork import PreforkServer
from evaluator.messages import job
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Device, Dtype, Job, limits_of

NAME = problems.find("allreduce")
MODULE = problems.load(NAME)
SPINS_US = (30, 100, 300, 1000)
ONE = """\
def solution(tensor):
    return tensor * 1
"""
REFERENCE = """\
import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total
"""
SPIN = """\
import torch

CYCLES = {us} * torch.cuda.get_device_properties(0).clock_rate // 1000


def solution(tensor):
    torch.cuda._sleep(CYCLES)
    return tensor * 1
"""
SLEEP = """\
import time


def solution(tensor):
    ended = time.perf_counter_ns() + {us} * 1000
    while time.perf_counter_ns() < ended:
        pass
    return tensor * 1
"""
WARM_UP, BATCHES = 500, 300
KEPT = (
    *("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high", "empty_us"),
    *("kernel_single_us", "baseline_single_us", "burst_calls", "timed_calls"),
    *("kernel_bursts_us", "baseline_bursts_us"),
)
INSIDE_CALL, INSIDE_BATCHES = 200, 100  # one of the calls that warm up
INSIDE = """\
{source}

import statistics
import time

import torch

measured, made = solution, 0


def solution(tensor):
    global made
    made += 1
    if made == {at}:
        measure(tensor)
    return measured(tensor)


def measure(tensor):
    wait = torch.cuda.synchronize if tensor.is_cuda else int
    found = []
    for _ in range({batches}):
        wait()
        began = time.perf_counter_ns()
        for _ in range({calls}):
            measured(tensor)
        wait()
        found.append((time.perf_counter_ns() - began) / 1e3 / {calls})
    print("inside_us", statistics.median(found), flush=True)
"""


def kernels(device: Device) -> dict[str, str]:
    """Return the kernels by name: the shortest, the reference itself, and some of known length."""
    spin = SPIN if device is Device.CUDA else SLEEP
    spins = {f"spin {us} us": spin.format(us=us) for us in SPINS_US}
    return {"tensor * 1": ONE, "clone, all-reduce": REFERENCE, **spins}


def plain_us(source: str, given: argparse.Namespace) -> float:
    """Return the microseconds of a call in a process of its own, without judge and sandbox."""
    text = json.dumps({"source": source, **vars(given)})
    done = subprocess.run(
        [sys.executable, __file__, "--plain"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )
    return float(done.stdout.splitlines()[-1])


def _plain() -> float:
    import torch

    from problems.mesh import join_world

    given = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        device = join_world(given["device"], f"{folder}/store", 0, 1)
    shape = MODULE.problem.sizes[given["size"]]
    tensor = torch.randn(shape.m, shape.n, device=device, dtype=getattr(torch, given["dtype"]))
    space: dict[str, Any] = {}
    exec(given["source"], space)
    wait: Callable[[], object] = torch.cuda.synchronize if device.type == "cuda" else int

    def batch_us(calls: int) -> float:
        wait()
        began = time.perf_counter_ns()
        for _ in range(calls):
            space["solution"](tensor)
        wait()
        return (time.perf_counter_ns() - began) / 1e3 / calls

    batch_us(WARM_UP)
    all_us = [batch_us(given["calls"]) for _ in range(BATCHES)]
    return statistics.median(all_us)


def judged(source: str, given: argparse.Namespace, prefork: PreforkServer) -> dict[str, Any]:
    """Return what the judge says of a kernel, in microseconds."""
    device = Device(given.device)
    asked = Job(
        problem=NAME,
        source=INSIDE.format(
            source=source, at=INSIDE_CALL, batches=INSIDE_BATCHES, calls=given.calls
        ),
        world_size=1,
        size=given.size,
        dtype=Dtype(given.dtype),
        device=device,
        limits=limits_of(device),
    )
    report = evaluate(asked, prefork=prefork)
    if report.timing is None:
        raise SystemExit(report.message)
    found = {name: getattr(report.timing, name) for name in KEPT}
    printed = "".join(log.text for log in report.logs)
    inside = [float(word) for word in re.findall(r"inside_us (\S+)", printed)]
    return {**found, "inside_us": inside[0], "flags": report.flags, "phase_s": report.phase_s}


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return what reads where the figures go, and in which setting they are measured."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda", choices=[device.value for device in Device])
    parser.add_argument("--size", default="standard", choices=sorted(MODULE.problem.sizes))
    parser.add_argument("--dtype", default="bfloat16")
    return parser


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--calls", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    out, runs = given.__dict__.pop("out"), given.__dict__.pop("runs")
    _let_one_rank_be_measured()
    rows: list[dict[str, Any]] = []
    with PreforkServer(warm=True, program=(__file__, "--serve")) as prefork:
        for name, source in kernels(Device(given.device)).items():
            for _ in range(runs):
                own, reference = plain_us(source, given), plain_us(REFERENCE, given)
                row = {"kernel": name, "plain_us": own, "plain_baseline_us": reference}
                try:
                    row |= judged(source, given, prefork)
                except EvaluatorError as error:  # a host that scatters too much
                    row["error"] = str(error)
                rows.append(row)
                print(_line(row), flush=True)
                out.write_text(json.dumps({**provenance(), "rows": rows}, indent=1) + "\n")


def _let_one_rank_be_measured() -> None:
    """Take one rank in this process and in what it forks; a run may never have one."""
    job.LEAST_RANKS = 1
    object.__setattr__(MODULE, "problem", replace(MODULE.problem, world_sizes=(1,)))


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['kernel']:<18} plain {row['plain_us']:7.1f}  {row['error']}"
    true = row["plain_baseline_us"] / row["plain_us"]
    off = row["kernel_us"] - row["plain_us"]
    return (
        f"{row['kernel']:<18} plain {row['plain_us']:7.1f}  inside {row['inside_us']:7.1f}"
        f"  judged {row['kernel_us']:7.1f}"
        f" ({off:+5.1f} us, {off / row['plain_us']:+4.0%})  ratio {true:5.2f}"
        f" judged {row['speedup']:5.2f} ({row['speedup_low']:.2f} to {row['speedup_high']:.2f})"
        f"  empty {row['empty_us']:.0f}  calls {row['burst_calls']} {' '.join(row['flags'])}"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--plain"]:
        print(_plain(), flush=True)
        os._exit(0)  # NCCL waits for ever where a group without calls is destroyed
    elif sys.argv[1] == "--serve":
        _let_one_rank_be_measured()
        server.main(int(sys.argv[2]), *sys.argv[3:])
    else:
        main()
