"""Measures how many kernels an hour a host judges: `python -m benchmarks.queue_rate`.

Every kernel is another text, so nothing is judged twice. Each of the `--judges` stands for a worker
of a host: a process with a warm judge. Prints JSON, with the load of the host beside the rate.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Backend, Device, Job, limits_of
from evaluator.serve import TIERS, USUAL

SOURCE = """\
import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


def judged(number: int, count: int, tier: str, device: str) -> tuple[list[str], dict[str, float]]:
    """Judge so many kernels one after the other; return verdicts, and seconds by phase."""
    spent: Counter[str] = Counter()
    verdicts = []
    kind = Device(device)
    usual: dict[str, Any] = USUAL[kind] | ({} if kind is Device.CPU else {"size": "tiny"})
    with PreforkServer(warm=True) as prefork:
        for kernel in range(count + 1):
            job = Job(
                problem="allreduce",
                source=f"{SOURCE}# {number} {kernel}\n",
                backend=Backend.PYTORCH,
                device=kind,
                placement=TIERS[tier],
                limits=limits_of(kind),
                **usual,
            )
            report = evaluate(job, None, prefork)
            if kernel:  # the first starts what serves the others
                verdicts.append(str(report.verdict))
                spent.update(report.phase_s)
    return verdicts, {name: round(seconds / count, 3) for name, seconds in spent.items()}


def measured(judges: int, count: int, tier: str, device: str) -> dict[str, Any]:
    """Have so many judges judge so many kernels each, at the same time."""
    before = os.getloadavg()[0]
    with ProcessPoolExecutor(judges) as pool:
        began = time.monotonic()
        tasks = [pool.submit(judged, number, count, tier, device) for number in range(judges)]
        found = [task.result() for task in tasks]
        took_s = time.monotonic() - began
    total = judges * (count + 1)
    return {
        "tier": tier,
        "device": device,
        "judges": judges,
        "processors": os.cpu_count(),
        "kernels": total,
        "seconds": round(took_s, 1),
        "an_hour": round(3600 * total / took_s),
        "load_before": round(before, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "verdicts": dict(Counter(verdict for verdicts, _ in found for verdict in verdicts)),
        "phase_s": found[0][1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judges", type=int, default=1, help="workers at the same time")
    parser.add_argument("--kernels", type=int, default=20, help="of each, after a first one")
    parser.add_argument("--tier", choices=list(TIERS), default="check")
    parser.add_argument("--device", choices=[str(one) for one in Device], default="cpu")
    chosen = parser.parse_args()
    found = measured(chosen.judges, chosen.kernels, chosen.tier, chosen.device)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
