"""Judges kernels, ranks sharing a GPU or timed: `judge_kernels.py OUT.jsonl [KERNEL ...]`.

A KERNEL is `problem=path.py`, or a file as published trees name theirs,
`<number>_<slug>_<backend>.py`; `--list FILE` has more of them, a line each. `--references` judges
each problem's reference as a kernel, `--house` the kernels of tests/evaluator/gpu, whose headers
say what is expected, most of them of a timed run. Method: `evaluate`, `--parallel` judges at a
time, each with a warm server of its own, as in a worker; with `--placement full` they build at once
and are timed in turn. OUT.jsonl gets a line for each as it ends; what it holds already, by problem,
digest and setting, is not judged again: many calls make one run. A kernel that fills the GPU may
have those beside it declined, and beside others a limit may be too short: both again, alone.
`build_s` is the phase of that name, `compile_s` what the first trial takes beyond the others'
median, as many kernels compile in their first call, `rest_s` all else; what runs beside adds to
them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judged_lines import SECONDS, Turn, is_settled, line_of, read_lines, summary
from reports_file import now

import problems
from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement, Profile, limits_of
from evaluator.messages.report import Phase, Progress, Report
from tests.evaluator.kernel_files import all_in, reference_source

GRACE_S = 20.0
# A kernel that hangs must not use up the budget.
BUILD_S, VERIFY_S = 240.0, 110.0
_FILE = re.compile(
    r"(?P<number>\d+)_(?P<slug>\w+)_(?P<backend>cuda|triton|parallelkittens|pytorch)"
)


def turns(given: argparse.Namespace) -> Iterator[Turn]:
    """Everything that was asked for; kernels with a header as it says, others by each profile."""
    for turn in [*_references(given), *_files(given)]:
        for profile in given.profiles.split(","):
            yield replace(turn, job=replace(turn.job, profile=Profile(profile)))
    yield from _house(given)


def _job(given: argparse.Namespace, problem: str, source: str, backend: Backend) -> Job:
    limits = limits_of(given.device)
    return Job(
        problem=problem,
        source=source,
        backend=backend,
        placement=given.placement,
        world_size=given.world_size,
        device=given.device,
        dtype=given.dtype,
        size=given.size,
        trials=given.trials,
        limits=replace(limits, build_s=BUILD_S, verify_s=min(limits.verify_s, VERIFY_S)),
    )


def _references(given: argparse.Namespace) -> Iterator[Turn]:
    for name in problems.names() if given.references else ():
        slug = name.partition(".")[2]
        job = _job(given, slug, reference_source(name), Backend.PYTORCH)
        yield Turn(name=f"reference/{slug}", job=job)


def _house(given: argparse.Namespace) -> Iterator[Turn]:
    for folder in ("gpu/honest", "gpu/misbehaving") if given.house else ():
        for kernel in all_in(folder):
            ranks = max(kernel.world_size, given.world_size)
            job = replace(kernel.job, world_size=ranks, placement=given.placement)
            name = f"{folder}/{kernel.path.stem}"
            yield Turn(name=name, job=job, expected=tuple(sorted(kernel.verdicts)))


def _files(given: argparse.Namespace) -> Iterator[Turn]:
    listed = given.list.read_text().splitlines() if given.list else []
    for text in [*given.kernels, *filter(None, listed)]:
        slug, _, name = text.rpartition("=")
        path = Path(name)
        match = _FILE.fullmatch(path.stem)
        if not slug and match is None:
            raise SystemExit(f"{text}: write problem=path, or name it <number>_<slug>_<backend>.py")
        backend = Backend(match["backend"]) if match else Backend.PYTORCH
        problem = slug or (match["slug"] if match else "")
        if not slug and match and not _is_numbered(problem, int(match["number"])):
            raise SystemExit(f"{text}: that number is another problem's: write problem=path")
        job = _job(given, problem, path.read_text(), backend)
        place = f"{path.parent.name}/{path.name}"
        yield Turn(name=f"{path.parent.name}/{path.stem}", job=job, path=place)


def _is_numbered(slug: str, number: int) -> bool:
    """Return True if a tree may call the problem so: published trees have one more before the 33rd,
    and some have another problem of that name."""
    today = problems.load(problems.find(slug)).problem.number
    return number == today or number == today + 1 > 33


def judged(turn: Turn, prefork: PreforkServer, deadline: float) -> tuple[Report | str, list[float]]:
    """The report, or why there is none, and the seconds of each trial. Raises Cancelled at the
    monotonic clock's `deadline`."""
    steps: list[tuple[Progress, float]] = []

    def is_late(progress: Progress) -> bool:
        at = time.monotonic()
        if not steps or steps[-1][0] != progress:
            steps.append((progress, at))
        return at > deadline

    try:
        found: Report | str = evaluate(turn.job, is_late, prefork)
    except Cancelled:
        raise
    except Exception as error:  # noqa: BLE001 - one kernel's failure must not hide the others
        found = f"{type(error).__name__}: {str(error)[-1000:]}"
    return found, trial_seconds(steps, turn.job.trials)


def trial_seconds(steps: list[tuple[Progress, float]], trials: int) -> list[float]:
    """Return how long each trial took, of what a judge has said and when; those of the second run
    where it made two."""
    took: list[float] = []
    for (_, before), (progress, at) in pairwise(steps):
        if progress.phase is Phase.VERIFY and progress.done and progress.total == trials:
            took = [*(took if progress.done > 1 else []), at - before]
    return took


Keep = Callable[[Turn, Report, int], None]


class Run:
    """Judges turns in some threads, each of which owns its server, and keeps what they find.

    `keep` gets each report, too, with how many judges were beside it.
    """

    def __init__(self, given: argparse.Namespace, keep: Keep | None) -> None:
        self._given, self._began, self._keep_report = given, time.monotonic(), keep
        self._lock, self._queue = threading.Lock(), SimpleQueue[Turn]()

    def judge_all(self, wanted: list[Turn], parallel: int) -> None:
        """Judge them, so many at a time, as long as the budget lasts."""
        for turn in wanted:
            self._queue.put(turn)
        args = (parallel - 1,)
        threads = [threading.Thread(target=self._serve, args=args) for _ in range(parallel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _serve(self, beside: int) -> None:
        ends = self._began + self._given.budget_s
        with PreforkServer(warm=True) as prefork:
            while time.monotonic() < ends:
                try:
                    turn = self._queue.get_nowait()
                except Empty:
                    return
                began = time.monotonic()
                try:
                    found, trial_s = judged(turn, prefork, ends + GRACE_S)
                except Cancelled:
                    return
                wall_s = time.monotonic() - began
                self._keep(turn, found, line_of(turn, found, trial_s, wall_s, beside))

    def _keep(self, turn: Turn, found: Report | str, line: dict[str, Any]) -> None:
        with self._lock:
            with self._given.out.open("a") as out:
                out.write(json.dumps(line) + "\n")
            if self._keep_report is not None and isinstance(found, Report):
                self._keep_report(turn, found, line["beside"])
            seconds = " ".join(f"{line.get(name, 0):6.1f}" for name in SECONDS)
            told = line.get("verdict", "failed"), line.get("cause"), line.get("message")
            name = f"{turn.name:<60} {turn.job.profile:<8}"
            print(f"{time.monotonic() - self._began:6.1f} {name} {seconds}", *told, flush=True)


def keep_whole(path: Path) -> Keep:
    """Return what adds a line with the whole report to that file."""

    def keep(turn: Turn, report: Report, beside: int) -> None:
        kept = {
            "path": turn.path,
            "size_bytes": len(turn.job.source.encode()),
            "judged_at": now(),
            "beside": beside,
            "report": encode(report),
        }
        with path.open("a") as out:
            out.write(json.dumps(kept) + "\n")

    return keep


def judge(given: argparse.Namespace, wanted: list[Turn], keep: Keep | None) -> list[dict[str, Any]]:
    """Judge what OUT does not hold, then once more, alone, what others can have disturbed; return
    the lines there are."""
    run = Run(given, keep)
    for parallel in dict.fromkeys((given.parallel, 1)):
        known = {line["key"]: line for line in read_lines(given.out)}
        settled = {key for key, line in known.items() if is_settled(line)}
        seen = known.keys() if parallel > 1 else settled
        run.judge_all([turn for turn in wanted if turn.key not in seen], parallel)
    lines = {line["key"]: line for line in read_lines(given.out)}
    own = [lines[turn.key] for turn in wanted if turn.key in lines]
    print(f"{len(own)} of {len(wanted)} judged\n{summary(own)}")
    return own


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--list", type=Path, help="more kernels, a line each")
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--house", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression that names must match")
    parser.add_argument("--placement", type=Placement, default=Placement.SHARED)
    parser.add_argument("--world-size", type=int, default=4)
    parser.add_argument("--size", default="standard")
    parser.add_argument("--dtype", type=Dtype, default=Dtype.BFLOAT16)
    parser.add_argument("--device", type=Device, default=Device.CUDA)
    parser.add_argument("--profiles", default="hardened", help="separated by commas")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--parallel", type=int, help="judges at a time; default 6 on one GPU, 1")
    parser.add_argument("--budget-s", type=float, default=540.0, help="start none after this long")
    parser.add_argument("--reports", type=Path, help="also whole reports, a line each")
    given = parser.parse_intermixed_args()
    given.parallel = given.parallel or (6 if given.placement is Placement.SHARED else 1)
    return given


def main() -> int:
    """Exit status 0: there is a report of each."""
    given = _arguments()
    wanted = [turn for turn in turns(given) if re.search(given.only, turn.name)]
    own = judge(given, wanted, keep_whole(given.reports) if given.reports else None)
    return 0 if len(own) == len(wanted) and all("verdict" in line for line in own) else 1


if __name__ == "__main__":
    sys.exit(main())
