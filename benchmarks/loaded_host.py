"""Judge one honest kernel again and again while other processes burn every processor.

`python benchmarks/loaded_host.py [times]` prints each verdict with its flags and how long it
took, and ends with 1 where a run failed. No load may turn a right kernel into a failure.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evaluator.evaluate import evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.faults import EvaluatorError
from evaluator.messages.job import Job
from evaluator.messages.report import Verdict

KERNEL = """
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
BURN = "while True: pass"


@contextlib.contextmanager
def burning() -> Iterator[None]:
    """Keep every processor busy while the block runs."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def main(times: int) -> int:
    """Return 1 where a run failed."""
    failed = False
    with burning(), PreforkServer(warm=True) as prefork:
        for number in range(1, times + 1):
            began = time.monotonic()
            is_ok, told = judged(prefork)
            failed |= not is_ok
            load, *_ = os.getloadavg()
            print(f"{number:3} {time.monotonic() - began:6.1f} s, load {load:5.1f}: {told}")
    return int(failed)


def judged(prefork: PreforkServer) -> tuple[bool, str]:
    """Return whether the kernel was found right, and what was found."""
    try:
        report = evaluate(Job(problem="allreduce", source=KERNEL), prefork=prefork)
    except EvaluatorError as error:
        return False, f"error: {error}"
    return report.verdict is Verdict.OK, f"{report.verdict} {report.flags}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
