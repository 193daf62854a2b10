"""Judge kernel.py again and say how the result differs from report.json, both of this folder.

Needs Python 3.11 or later and a clone of the PKB Leaderboard, in whose folder it is run:

    python <this folder>/compare.py            judges here, then compares
    python <this folder>/compare.py new.json   compares with a report that you already have

Exit status 0: the same verdict, and intervals that meet. 1: another result. 2: nothing to compare.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FLAGS = ("world_size", "size", "dtype", "profile", "device", "placement", "backend")
TIMES = ("speedup", "speedup_low", "speedup_high", "kernel_us", "baseline_us")

Values = dict[str, Any]


def main(arguments: list[str]) -> int:
    job: Values = json.loads((HERE / "job.json").read_text())
    digest = hashlib.sha256((HERE / "kernel.py").read_bytes()).hexdigest()
    if digest != job["kernel_digest"]:
        print(f"kernel.py is not the kernel of this bundle: its SHA-256 is {digest}")
        return 2
    stored = HERE / "report.json"
    if not stored.exists():
        print("This bundle has no report: its kernel had not been judged.")
        return 2
    found = Path(arguments[0]).read_text() if arguments else judged(job)
    if not found.strip():
        return 2
    return compared(json.loads(stored.read_text()), json.loads(found))


def judged(job: Values) -> str:
    """Return what the evaluator prints; empty where it could not judge."""
    command = [sys.executable, "-m", "evaluator", "run", job["problem"], str(HERE / "kernel.py")]
    for flag in FLAGS:
        command += [f"--{flag.replace('_', '-')}", str(job[flag])]
    print(" ".join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout if done.returncode in (0, 1) else ""


def compared(before: Values, now: Values) -> int:
    rows = [("verdict", before["verdict"], now["verdict"])]
    rows += [(name, before[name], now[name]) for name in ("judge_version", "problem_digest")]
    rows += [
        (name, number(before["timing"], name), number(now["timing"], name))
        for name in TIMES
        if before["timing"] or now["timing"]
    ]
    print(f"{'':16} {'in report.json':>24} {'now':>24}")
    for name, old, new in rows:
        mark = "" if old == new else "  differs"
        print(
            f"{name:16} {str(old)[:24]:>24} {str(new)[:24]:>24}{mark if name not in TIMES else ''}"
        )
    agree = before["verdict"] == now["verdict"] and meet(before["timing"], now["timing"])
    print("The same result, as far as the intervals tell." if agree else "Another result.")
    return 0 if agree else 1


def number(timing: Values | None, name: str) -> str:
    return f"{timing[name]:.4g}" if timing else "-"


def meet(one: Values | None, other: Values | None) -> bool:
    """Return True if the 95 % intervals of the speedups have a point in common."""
    if not one or not other:
        return not one and not other
    above = one["speedup_low"] > other["speedup_high"]
    below = one["speedup_high"] < other["speedup_low"]
    return not above and not below


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
