"""What the judge's clock makes of a call: `python benchmarks/batch_parts.py OUT.json`.

Method: one process, without judge and sandbox, makes batches of calls of problem 1 with one rank,
each on inputs of its own, after a rest as a frozen side has: calls alone, and calls each followed
by what follows them in a judged batch (`evaluator.rank.chaining`); and both again empty but for the
first calls, as the judge's empty batches are. Whole less empty, by call, is what a call takes, and
what the judge's clock makes of it. `--rounds` of each kind, in turns; medians.

A processor of a virtual machine may be one half of a core whose other half somebody else uses: then
all that it does takes up to twice as long, for seconds. A loop of arithmetic right after each batch
tells. `own` are the medians of batches after which it took at most OWN_SHARE of its best time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from provenance import provenance
from true_times import MODULE, ONE, REFERENCE, WARM_UP, parser_of

from evaluator.buffers import memory
from evaluator.buffers.input_locks import kernel_for, make_lock, span_over
from evaluator.buffers.slab import Cursor, lay_out
from evaluator.host.cores import share
from evaluator.messages.job import Device
from evaluator.oracle.group import SPARE_CALLS
from evaluator.oracle.rank import FLUSH_BYTES
from evaluator.rank.calls import Slot, Work
from evaluator.rank.chaining import chain
from evaluator.timing.pace import PACES
from problems.mesh import join_world

KERNELS = {"tensor * 1": ONE, "clone, all-reduce": REFERENCE}
REST_S, OWN_SHARE = 0.1, 1.1


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Holds a batch's microseconds, and those of the loop of arithmetic after it."""

    us: float
    loop_us: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        device = join_world(given.device, f"{folder}/store", 0, 1)
    if cores := share(1):
        os.sched_setaffinity(0, {cores.launching[0]})
    rows, pace = [], PACES[Device(given.device)]
    for name, source in KERNELS.items():
        slots = chained(source, device, given, pace.many_calls)
        found = measured(slots, device, given.rounds, pace.spare_calls)
        own = summed_up(found, pace.many_calls - pace.spare_calls)
        rows += [{"kernel": name, **row} for row in own]
        print(*rows[-2:], sep="\n", flush=True)
    told = {**provenance(), "rounds": given.rounds, "rows": rows}
    given.out.write_text(json.dumps(told, indent=1) + "\n")


def chained(source: str, device: torch.device, given: argparse.Namespace, calls: int) -> list[Slot]:
    """Return so many calls that are chained, and some to warm up with, of drawn inputs."""
    space: dict[str, Any] = {}
    exec(source, space)
    size, dtype = MODULE.problem.sizes[given.size], getattr(torch, given.dtype)
    shape, cursor, every = (size.m, size.n), Cursor(), calls + SPARE_CALLS
    drawn = [torch.randn(shape, device=device, dtype=dtype) for _ in range(every)]
    layouts = [lay_out(cursor, {"tensor": tensor}, [(shape, dtype)]) for tensor in drawn]
    fd, slab = memory.create(device, cursor.close())
    os.close(fd)
    for tensor, layout in zip(drawn, layouts, strict=True):
        layout.inputs[0].on(slab.everything).copy_(tensor)
    work = Work(solution=space["solution"], groups={}, names=MODULE.problem.outputs)
    slots = [Slot(slab, work, layout.node()) for layout in layouts]
    tolerance, locks = MODULE.problem.tolerances[given.dtype], list[Any]([None])
    for tensor, (before, after) in zip(drawn, pairwise(layouts[:calls]), strict=False):
        lock = make_lock(span_over(after.inputs), [(before.outputs[0], tensor)], tolerance)
        locks.append(lock.node if lock else None)
    told = {"calls": range(calls), "locks": locks, "kernel": kernel_for(device)}
    chain(slab, slots, {**told, "warm_up": range(calls, every)})
    return slots


def measured(
    slots: Sequence[Slot], device: torch.device, rounds: int, spare: int
) -> dict[tuple[bool, bool], list[Batch]]:
    """Return batches by whether their calls are followed by what judged ones are, and whether they
    are empty but for `spare` calls."""
    is_gpu = device.type == "cuda"
    wait: Callable[[], object] = torch.cuda.synchronize if is_gpu else int
    flushed = torch.empty(FLUSH_BYTES if is_gpu else 1, dtype=torch.uint8, device=device)
    *own, first, second = slots
    for _ in range(WARM_UP):
        first.warm_up()
    found: dict[tuple[bool, bool], list[Batch]] = {
        (is_followed, is_empty): [] for is_followed in (False, True) for is_empty in (False, True)
    }
    for _ in range(rounds):
        for (is_followed, is_empty), batches in found.items():
            made = Slot.warm_up if is_followed else _call_alone
            nothing = Slot.skip if is_followed else Slot._given
            count = spare if is_empty else len(own)
            for slot in (first, second) * 2:
                made(slot)
            flushed.zero_()
            wait()
            time.sleep(REST_S)
            began = time.perf_counter_ns()
            for slot in own[:count]:
                made(slot)
            for slot in own[count:]:
                nothing(slot)
            wait()
            took_us = (time.perf_counter_ns() - began) / 1e3
            batches.append(Batch(us=took_us, loop_us=arithmetic_us()))
    return found


def _call_alone(slot: Slot) -> None:
    slot.solution(*slot._given())


def arithmetic_us() -> float:
    """Return the microseconds of a loop of arithmetic: the processor's, and nothing else's."""
    began, total = time.perf_counter_ns(), 0
    for number in range(2000):
        total += number & 7
    return (time.perf_counter_ns() - began) / 1e3


def summed_up(found: dict[tuple[bool, bool], list[Batch]], calls: int) -> list[dict[str, Any]]:
    """Return the figures of all batches, and of those whose processor was their own; empty ones
    lack so many calls."""
    best_us = min(batch.loop_us for batches in found.values() for batch in batches)
    rows = []
    for name, most_us in (("all", float("inf")), ("own", OWN_SHARE * best_us)):
        kept = {
            kind: [batch.us for batch in batches if batch.loop_us <= most_us]
            for kind, batches in found.items()
        }
        row: dict[str, Any] = {"batches": name, "counts": [len(own) for own in kept.values()]}
        if all(kept.values()):
            whole = {kind: statistics.median(own) for kind, own in kept.items()}
            for told, followed in (("call_us", False), ("judged_us", True)):
                row[told] = (whole[followed, False] - whole[followed, True]) / calls
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
    os._exit(0)  # NCCL waits for ever where a group without calls is destroyed
