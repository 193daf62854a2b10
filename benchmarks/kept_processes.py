"""Does a judge that has served many runs measure otherwise? `kept_processes.py OUT.jsonl`.

Method: the reference of a problem, judged as a submission `--runs` times by each of three judges in
turns, whose kept processes serve 200 runs (as in use), 12, and 1. OUT.jsonl gets a line a run:
`served` is how many runs those processes had served before. It ends with what is told of all lines:
by limit the mean speedup with its standard error, and by how much it grows with a run served.
A call that stops at its budget goes on with the next; then `served` begins anew.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import read_lines

import problems
from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Device, Dtype, Job, limits_of
from tests.evaluator.kernel_files import reference_source

LIMITS = (200, 12, 1)
SERVES = """
import sys
from evaluator.judge import pool, prefork
pool.MOST_RUNS = {limit}
prefork.main(int(sys.argv[1]), *sys.argv[2:])
"""


def main(argv: Sequence[str] | None = None) -> None:
    given = _arguments(argv)
    deadline = time.monotonic() + given.budget_s
    job, lines = _job(given), read_lines(given.out)
    with ExitStack() as stack:
        servers = {
            limit: stack.enter_context(
                PreforkServer(warm=True, program=("-c", SERVES.format(limit=limit)))
            )
            for limit in LIMITS
        }
        served = dict.fromkeys(LIMITS, 0)
        for number in range(len(lines), given.runs * len(LIMITS)):
            limit = LIMITS[number % len(LIMITS)]
            told = _judged(job, servers[limit], deadline)
            if told is None:
                break
            lines.append({"limit": limit, "served": served[limit] % limit, **told})
            with given.out.open("a") as out:
                out.write(json.dumps(lines[-1]) + "\n")
            served[limit] = 0 if "failed" in told else served[limit] + 1
    for limit in LIMITS:
        print(summary(limit, [line for line in lines if line["limit"] == limit]))


def summary(limit: int, lines: Sequence[dict[str, Any]]) -> str:
    """Say what the runs of one limit are in the mean, and how they grow with runs served."""
    right = [line for line in lines if line.get("speedup")]
    logs = [math.log(line["speedup"]) for line in right]
    if len(logs) < 3:
        return f"limit {limit:3}: {len(lines)} runs, {len(logs)} timed"
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    told = f"limit {limit:3}: {len(logs)} of {len(lines)} runs timed, "
    told += f"{math.exp(mean):.3f}x +- {error:.3f}"
    served = [line["served"] for line in right]
    if len(set(served)) == 1:
        return told
    slope, start = statistics.linear_regression(served, logs)
    rest = [log - start - slope * at for at, log in zip(served, logs, strict=True)]
    spread = math.sqrt(sum(at * at for at in rest) / (len(logs) - 2))
    slope_error = spread / (statistics.pstdev(served) * math.sqrt(len(logs)))
    return f"{told}, {100 * slope:+.2f} % +- {100 * slope_error:.2f} a run served"


def _judged(job: Job, prefork: PreforkServer, deadline: float) -> dict[str, Any] | None:
    """Return what a line keeps of a run, None where it was stopped at the deadline."""
    began = time.monotonic()
    try:
        report = evaluate(job, lambda _: time.monotonic() > deadline, prefork)
    except Cancelled:
        return None
    except EvaluatorError as error:
        return {"failed": str(error)[-500:]}
    told: dict[str, Any] = {"verdict": report.verdict, "flags": report.flags}
    if timing := report.timing:
        names = ("speedup", "speedup_low", "speedup_high", "kernel_us", "baseline_us")
        told |= {name: round(getattr(timing, name), 4) for name in names}
    return {**told, "wall_s": round(time.monotonic() - began, 2)}


def _job(given: argparse.Namespace) -> Job:
    name = problems.find(given.problem)
    return Job(
        problem=name.partition(".")[2],
        source=reference_source(name),
        world_size=given.world_size,
        device=given.device,
        dtype=given.dtype,
        size=given.size,
        limits=limits_of(given.device),
    )


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="a line for each run")
    parser.add_argument("--problem", default="allreduce", help="slug or number")
    parser.add_argument("--runs", type=int, default=60, help="of each limit")
    parser.add_argument("--device", type=Device, choices=list(Device), default=Device.CUDA)
    parser.add_argument("--dtype", type=Dtype, choices=list(Dtype), default=Dtype.BFLOAT16)
    parser.add_argument("--size", default="standard")
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--budget-s", type=float, default=540.0, help="stop after this long")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
