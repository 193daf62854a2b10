"""How far references are off at a size, and how many elements: `rounding_tails.py OUT.jsonl`.

At larger sizes rounding has longer tails, and a tolerance may be too narrow for honest kernels.
Method: each hidden trial by itself (at `large` there is no room for more), float64 oracle, W ranks
on processors, on a GPU each (`--cuda`), or on one GPU (`--shared`). OUT.jsonl gets a line for each
output of a trial, all ranks together: the largest error in tolerances, the root mean square as a
share of its limit, and how many elements are beyond half a tolerance, 1, 2 and 4. What it holds
already is not done again, and nothing is begun after `--budget-s`: many calls make one run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import read_lines

import problems
from problems.calls import call
from problems.comparison import compare
from problems.ranks import RankFailure, RankPool
from problems.screen import TRIALS, Setting, scene_on_rank, trials_of
from problems.spec import Tolerance
from problems.trials import TrialSpec

BEYOND = (0.5, 1.0, 2.0, 4.0)  # tolerances
NEAR = 0.7  # of a tolerance


def errors_on_rank(
    rank: int, world_size: int, setting: Setting, spec: TrialSpec
) -> list[dict[str, Any]]:
    """Return how far each output of the reference is off on this rank, in one trial."""
    scene = scene_on_rank(rank, world_size, setting, spec)
    module = scene.module
    got = scene.settled(call(module.reference, module.problem, scene.inputs, scene.groups))
    return [
        _told(mine, truth, tolerance)
        for mine, truth, tolerance in zip(got, scene.truth, scene.tolerances, strict=True)
    ]


def _told(got: torch.Tensor, truth: torch.Tensor, tolerance: Tolerance) -> dict[str, Any]:
    found = {}
    for factor in BEYOND:
        wider = replace(tolerance, atol=factor * tolerance.atol, rtol=factor * tolerance.rtol)
        found[factor] = compare(got, truth, wider)
    return {
        "elements": found[1.0].elements,
        "max_error": found[1.0].max_error,
        "rms_share": found[1.0].rms_share,
        "beyond": {str(f): one.mismatched + one.outliers for f, one in found.items()},
    }


def together(ranks: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield each output with the worst of all ranks, and what is beyond on all of them."""
    for index, own in enumerate(zip(*ranks, strict=True)):
        errors = [each["max_error"] for each in own]
        yield {
            "output": index,
            "elements": sum(each["elements"] for each in own),
            "max_error": None if None in errors else round(max(errors), 4),
            "rms_share": round(max(each["rms_share"] for each in own), 4),
            "beyond": {key: sum(each["beyond"][key] for each in own) for key in own[0]["beyond"]},
        }


def turns(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what one line of work is: a problem, a type, a secret and a trial."""
    for name in [problems.find(text) for text in given.problem] or problems.names():
        for dtype in given.dtypes.split(","):
            for secret in range(given.secrets):
                for trial in range(given.trials):
                    yield {"problem": name, "dtype": dtype, "secret": secret, "trial": trial}


def lines_of(
    pool: RankPool, turn: dict[str, Any], given: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return the lines of a trial, or one that says why there are none."""
    setting = Setting(
        name=turn["problem"],
        profile="hardened",
        size=given.size,
        dtype=turn["dtype"],
        secret=f"tails {turn['secret']}".encode(),
        device=pool.device,
    )
    spec = trials_of(setting)[turn["trial"]]
    began = time.monotonic()
    try:
        ranks = pool.run(errors_on_rank, setting, spec)
    except RankFailure as failure:
        return [{**turn, "failed": str(failure).strip().splitlines()[-1][-300:]}]
    told = {**turn, "m": spec.m, "n": spec.n, "wall_s": round(time.monotonic() - began, 1)}
    return [{**told, **own} for own in together(ranks)]


def summary(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each problem and type that comes near its tolerance somewhere, or fails."""
    for key in dict.fromkeys((line["problem"], line["dtype"]) for line in lines):
        own = [line for line in lines if (line["problem"], line["dtype"]) == key]
        failed = {line["failed"] for line in own if "failed" in line}
        right = [line for line in own if "failed" not in line]
        errors = [line["max_error"] for line in right]
        worst = float("inf") if None in errors else max(errors, default=0.0)
        share = max((line["rms_share"] for line in right), default=0.0)
        if failed or max(worst, share) > NEAR:
            beyond = {f: sum(line["beyond"][str(f)] for line in right) for f in BEYOND}
            yield f"{' '.join(key)}: {worst:.3g}, rms {share:.3g}, beyond {beyond} {failed or ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("problem", nargs="*", help="slug or number; default: all")
    parser.add_argument("--size", default="large")
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--dtypes", default="bfloat16", help="separated by commas")
    parser.add_argument("--secrets", type=int, default=1)
    most = range(1, TRIALS["hardened"] + 1)
    parser.add_argument("--trials", type=int, choices=most, default=2, help="of each secret")
    parser.add_argument("--cuda", action="store_true", help="a GPU for each rank")
    parser.add_argument("--shared", action="store_true", help="all ranks on one GPU")
    parser.add_argument("--budget-s", type=float, default=540.0, help="begin nothing after this")
    parser.add_argument("--silent-s", type=float, default=300.0, help="give a trial up after this")
    given = parser.parse_args()
    began, keys = time.monotonic(), ("problem", "dtype", "secret", "trial")
    known = {tuple(line[key] for key in keys) for line in read_lines(given.out)}
    device = "cuda" if given.cuda or given.shared else "cpu"
    where = {"timeout_s": given.silent_s, "device": device, "is_shared": given.shared}
    with RankPool(given.world_size, **where) as pool, given.out.open("a") as out:
        for turn in turns(given):
            if tuple(turn.values()) in known or time.monotonic() - began > given.budget_s:
                continue
            for line in lines_of(pool, turn, given):
                out.write(json.dumps(line) + "\n")
                out.flush()
    print("\n".join(summary(read_lines(given.out))))


if __name__ == "__main__":
    main()
