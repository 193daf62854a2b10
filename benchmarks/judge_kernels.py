"""Judges kernels, ranks sharing a GPU or timed: `judge_kernels.py OUT.jsonl [KERNEL ...]`.

A KERNEL is `problem=path.py`, or a file as published trees name theirs,
`<number>_<slug>_<backend>.py`; `--list FILE` has more of them, a line each. `--references` judges
each problem's reference as a kernel, `--house` the kernels of tests/evaluator/gpu, whose headers
say what is expected, most of them of a timed run. Method: `evaluate`, `--parallel` judges at a
time, each with a warm server of its own, as in a worker; with `--placement full` they build at once
and are timed in turn. OUT.jsonl gets a line for each as it ends; what it holds already, by problem,
digest and setting, is not judged again: many calls make one run. A kernel that fills the GPU may
have those beside it declined, and beside others a limit may be too short: both again, alone.
`build_s` is the phase of that name, `rest_s` all the others; both grow with what runs beside.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reports_file import now

import problems
from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement, Profile, limits_of
from evaluator.messages.report import JUDGE_VERSION, Report, Verdict
from tests.evaluator.kernel_files import all_in, reference_source

GRACE_S = 20.0
# A kernel that hangs must not use up the budget.
BUILD_S, VERIFY_S = 240.0, 110.0
STOOD_STILL = "while standing still"  # how a verdict of `timeout` says that it is no limit's
KEPT = ("verdict", "phase", "cause", "message", "evidence", "ranks", "flags", "phase_s")
_FILE = re.compile(r"\d+_(?P<slug>\w+)_(?P<backend>cuda|triton|parallelkittens|pytorch)")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A job under its name; `expected` are the verdicts of a header, if it has one. `path` is that
    of a file, from its folder on."""

    name: str
    job: Job
    path: str = ""
    expected: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        job = self.job
        setting = (job.world_size, job.size, job.dtype, job.profile, job.device, job.placement)
        return "/".join(map(str, (job.problem, job.kernel_digest[:16], *setting)))


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
        job = _job(given, problem, path.read_text(), backend)
        place = f"{path.parent.name}/{path.name}"
        yield Turn(name=f"{path.parent.name}/{path.stem}", job=job, path=place)


def judged(turn: Turn, prefork: PreforkServer, deadline: float) -> tuple[Report | None, str]:
    """The report, or why there is none. Raises Cancelled at the monotonic clock's `deadline`."""
    try:
        return evaluate(turn.job, lambda _: time.monotonic() > deadline, prefork), ""
    except Cancelled:
        raise
    except Exception as error:  # noqa: BLE001 - one kernel's failure must not hide the others
        return None, f"{type(error).__name__}: {str(error)[-1000:]}"


def is_settled(line: dict[str, Any]) -> bool:
    """Whether a line says of its kernel what nothing beside it can have caused."""
    if "verdict" not in line or line["beside"] == 0:
        return "verdict" in line
    if line["verdict"] == Verdict.TIMEOUT:
        return STOOD_STILL in line["message"]
    return not (line["verdict"] == Verdict.HOST_UNSUPPORTED or line["cause"] == "beside")


def line_of(
    turn: Turn, report: Report | None, failed: str, wall_s: float, beside: int
) -> dict[str, Any]:
    """What the file keeps of a kernel; `beside` are the judges that may have been at work, too."""
    told: dict[str, Any] = {"failed": failed}
    if report is not None:
        fields = encode(report)
        told = {name: fields[name] for name in KEPT}
        spent = sum(report.phase_s.values())
        build_s = report.phase_s.get("build", 0.0)
        told |= {"build_s": round(build_s, 2), "rest_s": round(spent - build_s, 2)}
    return {
        "key": turn.key,
        "name": turn.name,
        "problem": turn.job.problem,
        "digest": turn.job.kernel_digest,
        "profile": turn.job.profile,
        "world_size": turn.job.world_size,
        "judge": JUDGE_VERSION,
        "expected": turn.expected,
        "wall_s": round(wall_s, 2),
        "beside": beside,
        **told,
    }


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
                    report, failed = judged(turn, prefork, ends + GRACE_S)
                except Cancelled:
                    return
                wall_s = time.monotonic() - began
                self._keep(turn, report, line_of(turn, report, failed, wall_s, beside))

    def _keep(self, turn: Turn, report: Report | None, line: dict[str, Any]) -> None:
        with self._lock:
            with self._given.out.open("a") as out:
                out.write(json.dumps(line) + "\n")
            if self._keep_report is not None and report is not None:
                self._keep_report(turn, report, line["beside"])
            seconds = f"{line.get('build_s', 0):6.1f} {line.get('rest_s', 0):6.1f}"
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


def summary(lines: list[dict[str, Any]]) -> str:
    """How many there are of each verdict, and what one takes."""
    counts = Counter(
        "/".join(filter(None, (line.get("verdict", "failed"), line.get("cause")))) for line in lines
    )
    told = [f"{count:4} {verdict}" for verdict, count in counts.most_common()]
    known = [line for line in lines if "build_s" in line]
    for name in ("build_s", "rest_s", "wall_s") if known else ():
        told.append(f"median {name} {statistics.median(line[name] for line in known):.1f}")
    return "\n".join(told)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of an earlier call; none where there was none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


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
