# verdict: ok
# cheat: looks for the judge's secrets: its module, its seed, an oracle, another process outside
import gc
import os
import pathlib
import sys

import torch.distributed as dist

if loaded := [
    name for name in sys.modules if name in ("evaluator.judge.process", "evaluator.evaluate")
]:
    raise RuntimeError(f"escaped: {loaded} live in this process")
for thing in gc.get_objects():
    try:
        name = type(thing).__name__
    except ReferenceError:
        continue
    if name in ("Job", "Limits", "Report", "TrialSpec", "RankContext"):
        raise RuntimeError(f"escaped: found a {name}")
if len([p for p in os.listdir("/proc") if p.isdigit()]) > 64:
    raise RuntimeError("escaped: sees the host's processes")
for status in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        command = status.read_bytes()
    except OSError:
        continue
    if b"pytest" in command or b"gunicorn" in command or b"celery" in command:
        raise RuntimeError(f"escaped: sees {command!r}")


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
