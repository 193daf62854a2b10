"""How true judged times are: `python benchmarks/true_times.py OUT.json WHAT [--numbers N ..]`.

`truth` judges house kernels and calls the same files in a plain harness that shares no code with
the judge. There each rank queues [a spin of 4 ms, in which all the rest is queued][fresh inputs
copied][a barrier in symmetric memory, so that ranks begin together][event][call][event], 64 times
after 30 to warm up; a call's time is the longest rank's, less what two events alone show. Aim:
ratios of reference to kernel within 5 %, and intervals that hold the other's.
`selves` judges references as submissions: 1.00 within 0.02. `repeat` judges one house kernel ten
times: within 3 %. `queue` judges a mix one after the other with a kept judge and tells how many an
hour; kernels of `--subjects` are judged with it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import provenance

import problems
from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Backend, Device, Dtype, Job, limits_of
from evaluator.messages.report import Report
from evaluator.sandbox.sandbox import REPOSITORY

HOUSE = REPOSITORY / "fixtures" / "house"
TRUTH = (1, 3, 6, 7, 12, 16, 17, 34, 41, 54, 59, 65)
CALLS, WARM_UP, SPIN_CYCLES, SETS = 64, 30, 8_000_000, 8
ITSELF = "import problems\n\nsolution = problems.load({name!r}).reference\n"


def main() -> None:
    """Measure, print a line a kernel, write all of it after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("what", choices=("truth", "selves", "repeat", "queue"))
    parser.add_argument("--numbers", type=int, nargs="*", default=[])
    parser.add_argument("--subjects", type=Path, nargs="*", default=[])
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--size", default="standard")
    parser.add_argument("--seconds", type=float, default=480.0)
    given = parser.parse_args()
    until, rows = time.monotonic() + given.seconds, list[dict[str, Any]]()
    with PreforkServer(warm=True) as prefork:
        for name, path in _kernels(given):
            if time.monotonic() > until:
                break
            row: dict[str, Any] = {"name": name, "kernel": path.name if path else "reference"}
            row |= _judged(prefork, given, name, path)
            if given.what == "truth":
                row["plain"] = plain(given, name, path)
                row["judged_over_plain"] = _ratio(row)
            rows.append(row)
            print(json.dumps(row), flush=True)
            setting = {name: getattr(given, name) for name in ("what", "world", "size")}
            head = {"provenance": provenance(), **setting, "rows": rows}
            given.out.write_text(json.dumps(head, indent=1) + "\n")
    if given.what == "queue":
        seconds = sum(row["wall_s"] for row in rows)
        print(f"{len(rows)} kernels in {seconds:.0f} s: {3600 * len(rows) / seconds:.0f} an hour")


def _kernels(given: argparse.Namespace) -> list[tuple[str, Path | None]]:
    """Return the problems with the files to judge; None stands for the reference itself."""
    house = {int(path.name.split("_")[0]): path for path in HOUSE.glob("*.py")}
    every = {problems.load(name).problem.number: name for name in problems.names()}
    if given.what == "selves":
        return [(every[number], None) for number in given.numbers or sorted(every)]
    if given.what == "repeat":
        return [(every[n], house[n]) for n in given.numbers for _ in range(10)]
    if given.what == "truth":
        return [(every[number], house[number]) for number in given.numbers or TRUTH]
    slugs = {name.partition(".")[2]: name for name in every.values()}
    mixed: list[tuple[str, Path | None]] = [(every[n], house[n]) for n in given.numbers]
    mixed += [(every[n], None) for n in given.numbers]
    for path in given.subjects:
        slug = path.stem.partition("_")[2].rpartition("_")[0]
        if slug in slugs:
            mixed.append((slugs[slug], path))
    random.Random(0).shuffle(mixed)
    return mixed


def _judged(
    prefork: PreforkServer, given: argparse.Namespace, name: str, path: Path | None
) -> dict[str, Any]:
    source = path.read_text() if path else ITSELF.format(name=name)
    kind = path.stem.rpartition("_")[2] if path else "pytorch"
    job = Job(
        problem=name,
        source=source,
        backend=Backend(kind),
        world_size=given.world,
        size=given.size,
        dtype=Dtype.BFLOAT16,
        device=Device.CUDA,
        limits=limits_of(Device.CUDA),
    )
    began = time.monotonic()
    try:
        report = evaluate(job, prefork=prefork)
    except Exception as error:  # noqa: BLE001 - one that fails must not stop the others
        return {"error": str(error)[-2000:], "wall_s": time.monotonic() - began}
    return {"wall_s": round(time.monotonic() - began, 2), **_shown(report)}


def _shown(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {"verdict": report.verdict, "flags": report.flags}
    found["phase_s"] = dict(report.phase_s)
    if report.verdict != "ok":
        found["message"] = report.message
    if (timing := report.timing) is not None:
        names = (
            *("kernel_us", "baseline_us", "speedup", "speedup_low", "speedup_high", "empty_us"),
            *("resolution_us", "before_us", "after_us", "ahead"),
        )
        found |= {own: getattr(timing, own) for own in names}
        for side in ("kernel", "baseline"):
            times = getattr(timing, side)
            found[f"{side}_call_us"], found[f"{side}_series_us"] = times.call_us, times.series_us
    return found


def _ratio(row: dict[str, Any]) -> float | None:
    if "speedup" not in row or "speedup" not in row["plain"]:
        return None
    ratio: float = row["speedup"] / row["plain"]["speedup"]
    return round(ratio, 3)


def plain(given: argparse.Namespace, name: str, path: Path | None) -> dict[str, Any]:
    """Time kernel and reference without the judge; each in processes of its own."""
    sides = {}
    for side, source in (("baseline", None), ("kernel", path)):
        spawn = multiprocessing.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = zip(*[spawn.Pipe() for _ in range(given.world)], strict=True)
            task = Task(given.world, given.size, name, source, f"{folder}/store")
            ranks = [
                spawn.Process(target=_serve, args=(rank, task, theirs[rank]))
                for rank in range(given.world)
            ]
            for process in ranks:
                process.start()
            rows = [pipe.recv() if pipe.poll(90) else "no answer" for pipe in ours]
            for process in ranks:
                process.kill()
                process.join()
        if not all(isinstance(row, list) for row in rows):
            return {"error": str(rows)[-500:]}
        sides[side] = [max(own) for own in zip(*rows, strict=True)]
    drawn = sorted(
        statistics.median(random.choices(sides["baseline"], k=CALLS))
        / statistics.median(random.choices(sides["kernel"], k=CALLS))
        for _ in range(1000)
    )
    us = {f"{side}_us": round(statistics.median(own), 2) for side, own in sides.items()}
    speedup = us["baseline_us"] / us["kernel_us"]
    return {**us, "speedup": speedup, "speedup_low": drawn[25], "speedup_high": drawn[974]}


class Task(NamedTuple):
    """Holds what the plain ranks call: a kernel's file, or the reference where there is none."""

    world: int
    size: str
    name: str
    path: Path | None
    store: str


def _serve(rank: int, task: Task, pipe: Any) -> None:
    """Send the microseconds of each call of this rank, or what went wrong."""
    world = task.world
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    os.environ.update(LOCAL_WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    try:
        pipe.send(_times(rank, task))
    except BaseException as error:  # noqa: BLE001 - a process boundary
        pipe.send(repr(error)[-500:])
    time.sleep(60)


def _times(rank: int, task: Task) -> list[float]:
    """Return the microseconds of each call."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    from problems.running.mesh import arguments, mesh_groups

    torch.cuda.set_device(rank)
    at: dict[str, Any] = {"rank": rank, "world_size": task.world}
    device, cuda = torch.device("cuda", rank), cast(Any, torch.cuda)
    dist.init_process_group("nccl", init_method=f"file://{task.store}", device_id=device, **at)
    module = problems.load(task.name)
    size = module.problem.sizes[task.size]
    dims = module.dims(size.m, size.n, task.world)
    groups = mesh_groups(module.problem.mesh, dims, rank, task.world)
    sets = [_inputs(rank, task, 100 + trial) for trial in range(SETS)]
    flag = symmetric.rendezvous(symmetric.empty(1, device=device), cast(Any, dist.group.WORLD))

    def timed(solve: Callable[..., object], count: int) -> list[float]:
        found = []
        for number in range(count):
            copies, pairs = sets[number % SETS]
            given = arguments(copies, groups)
            cuda._sleep(SPIN_CYCLES)
            for to, source in pairs:
                to.copy_(source)
            flag.barrier(channel=0)
            began, ended = (cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            solve(*given)
            ended.record()
            cuda.synchronize()
            found.append(began.elapsed_time(ended) * 1e3)
        return found

    solution = _kernel(task.path) if task.path else module.reference
    timed(solution, WARM_UP)
    empty_us = statistics.median(timed(lambda *_: None, CALLS))
    return [us - empty_us for us in timed(solution, CALLS)]


def _kernel(path: Path) -> Callable[..., object]:
    """Import a kernel's file, which finds PKB's helpers as in the judge."""
    sys.path.insert(0, str(REPOSITORY / "evaluator" / "compat"))
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    kernel = sys.modules["kernel"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    solution: Callable[..., object] = kernel.solution
    return solution


def _inputs(rank: int, task: Task, trial: int) -> tuple[dict[str, object], list[tuple[Any, Any]]]:
    """Return arguments to call with, and each of their tensors with what it is filled from."""
    import torch

    from problems.running.calls import drawn
    from problems.trials import timed_trial
    from problems.values import rebuilt, tensors

    module, secret = problems.load(task.name), b"true times"
    spec = timed_trial(module.problem, task.size, trial, secret)
    how = {"secret": secret, "dtype": torch.bfloat16, "device": torch.device("cuda", rank)}
    _, fresh = drawn(module, spec, rank, task.world, **how)
    copies = {name: rebuilt(value, torch.clone) for name, value in fresh.items()}
    pairs = [
        pair
        for name, value in fresh.items()
        for pair in zip(tensors(copies[name]), tensors(value), strict=True)
    ]
    return copies, pairs


if __name__ == "__main__":
    main()
