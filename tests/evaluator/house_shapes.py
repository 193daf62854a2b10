"""Call house files with shapes that change and come back: `python -m tests.evaluator.house_shapes`.

Method: ranks on processors call each file's `solution` by Triton's interpreter, on the judge's
inputs of size `tiny` and of its hidden shapes, in the order of TURNS and never the same twice, and
compare every answer with the oracle's in float32. What a file keeps from call to call, memory,
flags and halves, has to serve whatever comes next; a judged run asks for few of these orders. One
line a file; exit status 0: all are right.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import problems
from tests.evaluator.house_calls import TRIALS, Place, join, loaded, made, specs_of, what_failed
from tests.evaluator.house_files import HouseKernel, all_house_kernels, read

A, B, C = 0, TRIALS - 2, TRIALS - 1  # the published shape, and two hidden ones
TURNS = (A, A, B, A, C, B, B, A)


def be_rank(given: argparse.Namespace) -> int:
    """Call a file, and print what is wrong with its answers."""
    import torch

    rank, folder = int(given.as_rank[0]), given.as_rank[1]
    device = join(folder, rank, given.ranks, given.limit_s)
    torch.set_num_threads(1)
    place = Place(rank=rank, ranks=given.ranks, device=device, size="tiny", dtype="float32")
    wrong = faults(read(given.files[0]), place)
    print(*wrong, sep="\n", flush=True)
    return 1 if wrong else 0


def faults(kernel: HouseKernel, place: Place) -> list[str]:
    """Return what is wrong with the answer of each turn in which it is."""
    from problems.audit.screen import outcome, scene_of

    module = problems.load(problems.find(kernel.slug))
    specs = specs_of(kernel, place)
    # Trials have their options in turns: in each round of them inputs differ, and shapes do not.
    again = [replace(specs[trial], trial=trial + TRIALS * turn) for turn, trial in enumerate(TURNS)]
    scenes = [scene_of(module, *one) for one in made(kernel, place, again)]
    solution, found = loaded(kernel).solution, []
    for turn, scene in enumerate(scenes):
        got = scene.settled(scene.call(solution))
        if why := outcome(got, scene.truth, scene.tolerances).why:
            found.append(f"turn {turn} of {TURNS}: {why}")
    return found


def told(given: argparse.Namespace, path: Path) -> str:
    """Run a file's ranks; return what one of them says, or nothing where all are right."""
    limits = ["--ranks", str(given.ranks), "--limit-s", str(given.limit_s)]
    program = [
        sys.executable,
        "-m",
        "tests.evaluator.house_shapes",
        str(path),
        *limits,
        "--as-rank",
    ]
    with tempfile.TemporaryDirectory(prefix="house-shapes-") as folder:
        commands = [[*program, str(rank), folder] for rank in range(given.ranks)]
        return what_failed(commands, folder, given.limit_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=300.0, help="longest time for one file")
    parser.add_argument("--as-rank", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_rank:
        return be_rank(given)
    failed = 0
    for path in given.files or [kernel.path for kernel in all_house_kernels()]:
        why = told(given, path)
        print(path.stem, why or "right", flush=True)
        failed += bool(why)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
