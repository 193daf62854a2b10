"""How exactly a gated call is timed: `python benchmarks/gate.py OUT.json [--world 2] [--nbytes N]`.

Method: W rank processes, one a GPU, queue a call behind a gate as the judge's runner does: the
gate, the inputs (`--nbytes`) opened, the work, the outputs (as many) copied and committed to. This
process writes the keys and looks for the last commitment, as the judge does. A call's time is what
is left when an empty call's median is taken off. Gates: the runner's kernel that spins on the word,
and a stream's own semaphore (`cuStreamWaitValue32`) on the same word. Truth is the same work
between two CUDA events behind the runner's gate, less what two events with nothing between them
show. Aim: the median within 1 us or 2 % of truth, whichever is larger; 10 to 90 % of the calls
within 2 us or 3 %.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import torch.distributed as dist
from judged_lines import provenance

from evaluator.buffers import control_page as page
from evaluator.buffers import cuda_kernel, cuda_memory, memory, sealing
from evaluator.buffers.control import Control, are_done, open_gates
from evaluator.rank.control import RankControl
from evaluator.rank.gated import GpuLane

AHEAD_S = 0.03
EMPTY, WAITS, REDUCE = "empty", "waits on the host", "all-reduce 1 MiB"
SPINS = {f"spin {us} us": us for us in (5, 20, 100, 1000)}
NAMES = (EMPTY, "tiny kernel", "two kernels", "copy 1 MiB", REDUCE, WAITS, *SPINS)
GATES = ("spinning kernel", "semaphore")
KEY = 0xFEDCBA9876543210


def works(device: torch.device) -> dict[str, Callable[[], object]]:
    """Return what a call may do, by name."""
    one = torch.zeros(1, device=device)
    some = torch.ones(1 << 19, device=device, dtype=torch.bfloat16)
    other = torch.ones_like(some)
    found: dict[str, Callable[[], object]] = {
        EMPTY: lambda: None,
        "tiny kernel": lambda: one.add_(1),
        "two kernels": lambda: (one.add_(1), one.add_(1)),
        "copy 1 MiB": lambda: other.copy_(some),
        REDUCE: lambda: dist.all_reduce(some),
        WAITS: lambda: one.add_(1).item(),
    }
    cuda: Any = torch.cuda
    for name, us in SPINS.items():
        found[name] = partial(cuda._sleep, 1980 * us)
    return found


class Call:
    """Holds what a slot of the runner holds of its ranges: one input and one output."""

    def __init__(self, nbytes: int) -> None:
        self.sealed = [(1 << 16, nbytes)]
        self.committed = [(nbytes + (1 << 17), nbytes)]


def serve(rank: int, given: argparse.Namespace, fd: int, store: str, pipe: Any) -> None:
    """Make calls as this process is asked, on one GPU."""
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    at = {"init_method": f"file://{store}", "rank": rank, "world_size": given.world}
    dist.init_process_group("nccl", device_id=device, **at)
    cuda: Any = torch.cuda
    control, call = RankControl(fd), Call(given.nbytes)
    slab = memory.create(device, 2 * given.nbytes + (1 << 20))[1]
    lane: Any = GpuLane(control, slab, cuda_kernel.compiled(sealing.SOURCE, device))
    ((offset, nbytes),) = call.committed
    output = slab.everything[offset : offset + nbytes]
    result, known = torch.ones_like(output), works(device)
    for work in known.values():
        for _ in range(20):
            work()
    torch.cuda.synchronize()
    while (order := pipe.recv()) is not None:
        name, kind, count = order
        pipe.send("ready")
        events = []
        for _ in range(count):
            control.wait_go(armed=True)
            _wait_for_gate(lane, kind, [call], control)
            events.append([cuda.Event(enable_timing=True) for _ in range(2)])
            if kind == "truth":
                events[-1][0].record()
            known[name]()
            if kind == "truth":
                events[-1][1].record()
            output.copy_(result)
            lane.end([call])
            control.queued()
            torch.cuda.synchronize()
        pipe.send([a.elapsed_time(b) * 1e3 for a, b in events] if kind == "truth" else None)


def _wait_for_gate(lane: Any, kind: str, calls: list[Call], control: RankControl) -> None:
    """Queue a gate: the runner's own, or a stream's semaphore before it."""
    if kind == "semaphore":
        address = ctypes.c_ulonglong(lane._kernels._wait.words[0] + 8 * page.GATE)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        least = ctypes.c_uint(control.sequence)
        cuda_memory.call_driver("cuStreamWaitValue32_v2", stream, address, least, ctypes.c_uint(0))
    lane.begin(calls)


class Bench:
    """Holds W ranks and their control pages."""

    def __init__(self, given: argparse.Namespace, folder: str) -> None:
        fork, self.pipes, self.controls, self.ranks = (
            multiprocessing.get_context("fork"),
            [],
            [],
            [],
        )
        for rank in range(given.world):
            fd = page.sealed_memfd("control", page.CONTROL_BYTES)
            ours, theirs = fork.Pipe()
            rest = (rank, given, fd, f"{folder}/store", theirs)
            self.ranks.append(fork.Process(target=serve, args=rest, daemon=True))
            self.ranks[-1].start()
            self.controls.append(Control(fd))
            self.pipes.append(ours)

    def measure(self, name: str, kind: str, count: int) -> tuple[list[float], float, list[float]]:
        """Return each call's microseconds, the share that was queued ahead, and the events'."""
        for pipe in self.pipes:
            pipe.send((name, kind, count))
        for pipe in self.pipes:
            pipe.recv()
        found, ahead = [], 0
        for _ in range(count):
            for control in self.controls:
                control.stage(page.Command.GATED, ())
                control.release(control.next_sequence())
            until = time.perf_counter() + AHEAD_S
            while not (queued := all(c.is_queued for c in self.controls)):
                if time.perf_counter() > until:
                    break
            ahead += queued
            began = time.perf_counter_ns()
            open_gates(self.controls, [KEY] * len(self.controls))
            while not are_done(self.controls, 1 << 21):
                pass
            found.append((time.perf_counter_ns() - began) / 1e3)
        rows = [pipe.recv() for pipe in self.pipes]
        if kind != "truth":
            return found, ahead / count, []
        # The rank that begins an all-reduce last waits for nobody.
        slowest = min if name == REDUCE else max
        return found, ahead / count, [slowest(own) for own in zip(*rows, strict=True)]


def spread(values: list[float], less: float = 0.0) -> dict[str, float]:
    """Return the median and the 10th and 90th percentile, each `less` that much."""
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    shown = {"median": statistics.median(values), "p10": tenths[0], "p90": tenths[-1]}
    return {name: round(us - less, 2) for name, us in shown.items()}


def main() -> None:
    """Measure, print a line for each work and gate, and write all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    for name, value in (("--world", 2), ("--calls", 200), ("--nbytes", 1 << 20)):
        parser.add_argument(name, type=int, default=value)
    given, rows = parser.parse_args(), []
    empty: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given, folder)
        for name in NAMES:
            true = bench.measure(name, "truth", given.calls)[2]
            empty.setdefault("truth", statistics.median(true))
            for gate in GATES:
                times, ahead, _ = bench.measure(name, gate, given.calls)
                empty.setdefault(gate, statistics.median(times))
                row = {"work": name, "gate": gate, "ahead": ahead}
                row["truth"] = None if name == WAITS else spread(true, empty["truth"])
                row["us"] = spread(times, 0.0 if name == EMPTY else empty[gate])
                rows.append(row)
                print(json.dumps(row), flush=True)
        for rank in bench.ranks:
            rank.kill()
    found = {"provenance": provenance(), "world": given.world, "nbytes": given.nbytes, "rows": rows}
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    os._exit(0)


if __name__ == "__main__":
    main()
