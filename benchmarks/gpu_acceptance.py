"""Every GPU kernel of the tests through the judge: `gpu_acceptance.py OUT [--only NAME,...]`.

Method: the kernels of tests/evaluator/gpu, honest ones first, one after the other by `evaluate` and
one warm server, as in a worker. OUT/acceptance.json holds what is known after each of them.
A header's own number of ranks counts; `--world-size` is for those that name neither it nor ranks.
With `--size` honest kernels alone are judged, at that size.
Checked besides what the headers say: the times of two sleeping kernels differ as their sleeps do,
within 5 % (calls that do not sleep may be bound by their launches, which a sleep hides, 61 and 76
us of them in two runs, so such a kernel is compared with the longest sleep only); the plain kernel
judged again, and after every kernel that threatens the host, has a speedup whose interval overlaps
that of the first time; no cheat's speedup lies more than 5 % above the interval of an honest kernel
that does the same. No kernel is started when the budget is used; `--done` completes an earlier
acceptance.json and reads it by today's headers. Exit status 0: all judged, all as expected.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from acceptance_checks import PLAIN, Check, checks_of
from provenance import provenance
from reports_file import append, by_hand

from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.messages.report import Report
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.kernel_files import KernelFile, all_in, named

GRACE_S = 40.0
# A kernel that hangs must not use up the budget.
MOST_S = {"build_s": 150.0, "verify_s": 60.0, "timed_s": 120.0}
LOG_CHARS = 16384
Turn = tuple[str, KernelFile]
TOLD = ("verdict", "phase", "cause", "message", "evidence", "ranks", "flags", "phase_s", "gpus")
TIMES = (
    *("kernel_us", "baseline_us", "empty_us", "resolution_us", "before_us", "after_us", "ahead"),
    *("speedup", "speedup_low", "speedup_high", "warmup_calls", "timed_calls"),
)


@dataclass(kw_only=True)
class Acceptance:
    """What is known so far, which is what the file holds. `results` are JSON, by name."""

    path: Path
    provenance: dict[str, Any]
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def write(self) -> None:
        document = {
            "provenance": self.provenance,
            "unexpected": self.unexpected,
            "left_out": self.left_out,
            "checks": [vars(check) for check in self.checks],
            "kernels": self.results,
        }
        partial = self.path.with_suffix(".partial")
        text = json.dumps(document, indent=1).replace(f"{REPOSITORY}/", "")
        partial.write_text(f"{text}\n")
        partial.replace(self.path)

    @property
    def unexpected(self) -> list[str]:
        return [name for name, result in self.results.items() if result["complaints"]]


def at_size(size: str, only: list[str], world_size: int | None) -> Iterator[Turn]:
    for kernel in sorted(all_in("gpu/honest"), key=lambda k: k.path.stem):
        if not only or kernel.path.stem in only:
            sized = replace(_on_ranks(kernel, world_size), size=size)
            yield f"honest/{kernel.path.stem}", sized


def turns(only: list[str], world_size: int | None) -> Iterator[Turn]:
    """What to judge in turn, and under which name: the plain kernel, the honest ones, the plain one
    again, the others; what takes long last."""
    plain = _on_ranks(named("gpu/honest", PLAIN.partition("/")[2]), world_size)
    is_plain_wanted = not only or plain.path.stem in only
    if is_plain_wanted:
        yield PLAIN, plain
    for folder in ("honest", "misbehaving"):
        for kernel in sorted(all_in(f"gpu/{folder}"), key=lambda k: (k.slow, k.path.stem)):
            name = f"{folder}/{kernel.path.stem}"
            if name == PLAIN or (only and kernel.path.stem not in only):
                continue
            yield name, _on_ranks(kernel, world_size)
            if kernel.threatens:
                yield f"{PLAIN} after {kernel.path.stem}", plain
        if folder == "honest" and is_plain_wanted:
            yield f"{PLAIN} again", plain


def _on_ranks(kernel: KernelFile, world_size: int | None) -> KernelFile:
    is_free = kernel.world_size == 2 and not kernel.ranks
    return replace(kernel, world_size=world_size) if world_size and is_free else kernel


def judged(
    kernel: KernelFile, prefork: PreforkServer, deadline: float, keep: Callable[[Report], None]
) -> dict[str, Any] | None:
    """The result as JSON; None where it was stopped at the deadline (of the monotonic clock)."""
    limits = {name: min(most, getattr(kernel.limits, name)) for name, most in MOST_S.items()}
    job = replace(kernel.job, limits=replace(kernel.limits, **limits))
    began = time.monotonic()
    try:
        report = evaluate(job, lambda _: time.monotonic() > deadline, prefork)
    except Cancelled:
        return None
    except Exception as error:  # noqa: BLE001 - one kernel's failure must not hide the others
        said = f"{type(error).__name__}: {error}"
        told: dict[str, Any] = {"message": said, "complaints": ["no report"]}
    else:
        keep(report)
        told = {"complaints": kernel.complaints(report), **_told(report)}
    return {
        "purpose": kernel.purpose,
        "expected": sorted(kernel.verdicts),
        "world_size": kernel.world_size,
        "wall_s": round(time.monotonic() - began, 2),
        **told,
    }


def _told(report: Report) -> dict[str, Any]:
    """What is kept of a report: neither trials nor single bursts, and of logs their beginnings."""
    fields: dict[str, Any] = encode(report)
    timing = fields["timing"] or {}
    return {
        **{name: fields[name] for name in TOLD},
        "isolation": fields["isolation"],
        "timing": {name: timing[name] for name in TIMES} if timing else None,
        "logs": {str(log.rank): log.text[:LOG_CHARS] for log in report.logs if log.text},
    }


def read_again(kernel: KernelFile, result: dict[str, Any]) -> dict[str, Any]:
    """An earlier result with what today's header makes of it, for which it holds all but the ends
    of long logs."""
    if "verdict" not in result:
        return result
    timing = result["timing"] and SimpleNamespace(**result["timing"])
    logs = [SimpleNamespace(text=text) for text in result["logs"].values()]
    told = {**result, "ranks": tuple(result["ranks"]), "timing": timing, "logs": logs}
    complaints = kernel.complaints(cast(Report, SimpleNamespace(**told)))
    return {**result, "expected": sorted(kernel.verdicts), "complaints": complaints}


def _line(name: str, result: dict[str, Any]) -> str:
    timing, complaints = result.get("timing"), result["complaints"]
    speed = f"{timing['kernel_us']:9.1f} us {timing['speedup']:5.2f}x" if timing else ""
    mark, why = ("FAIL", [*complaints, result["message"]]) if complaints else ("ok", [])
    told = f"{result.get('verdict', 'no verdict'):<21} {speed:<20} {result['wall_s']:6.1f} s"
    return f"{mark:<4} {name:<46} {told}  {'; '.join(why)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for acceptance.json")
    parser.add_argument("--world-size", type=int, help="ranks of the kernels that name none")
    parser.add_argument("--only", default="", help="names of kernels, separated by commas")
    parser.add_argument("--size", help="of the problem, instead of the headers'")
    parser.add_argument("--budget-s", type=float, default=540.0, help="start none after this long")
    parser.add_argument("--done", type=Path, help="an earlier acceptance.json to complete")
    parser.add_argument("--reports", type=Path, help="also add lines for import_reports: .jsonl.gz")
    return parser.parse_args()


def keeper(path: Path | None, name: str, kernel: KernelFile) -> Callable[[Report], None]:
    """What puts the first report of an honest kernel into the file of `--reports`."""
    author, attempts = by_hand()
    attempt = attempts.get(kernel.path)
    if path is None or attempt is None or name != f"honest/{kernel.path.stem}":
        return lambda report: None
    return lambda report: append(path, author, attempt, kernel.job, report)


def _run(acceptance: Acceptance, given: argparse.Namespace) -> None:
    began = time.monotonic()
    only = [name for name in given.only.split(",") if name]
    present = len(list(Path("/dev").glob("nvidia[0-9]*")))
    with PreforkServer(warm=True) as prefork:
        prefork.start()
        wanted = at_size(given.size, only, given.world_size) if given.size else None
        for name, kernel in wanted or turns(only, given.world_size):
            if done := acceptance.results.get(name):
                acceptance.results[name] = read_again(kernel, done)
                continue
            result = None
            if kernel.gpus <= present and time.monotonic() - began < given.budget_s:
                keep = keeper(given.reports, name, kernel)
                result = judged(kernel, prefork, began + given.budget_s + GRACE_S, keep)
            if result is None:
                acceptance.left_out.append(name)
            else:
                acceptance.results[name] = result
                print(_line(name, result), flush=True)
            acceptance.write()


def main() -> int:
    given = _arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    acceptance = Acceptance(path=given.out / "acceptance.json", provenance=provenance())
    earlier = json.loads(given.done.read_text()) if given.done else {"kernels": {}}
    acceptance.results = dict(earlier["kernels"])
    _run(acceptance, given)
    if given.done and acceptance.results.keys() == earlier["kernels"].keys():
        acceptance.provenance = earlier["provenance"]  # nothing was judged here
    acceptance.checks += checks_of(acceptance.results)
    acceptance.write()
    for check in acceptance.checks:
        print(f"{'ok' if check.passed else 'FAIL':<4} {check.name}: {check.detail}")
    failed = [check.name for check in acceptance.checks if not check.passed]
    surprises = acceptance.unexpected + failed
    print(
        f"{len(acceptance.results)} judged, {len(acceptance.unexpected)} not as expected, "
        f"{len(failed)} of {len(acceptance.checks)} checks failed, "
        f"{len(acceptance.left_out)} left out; {', '.join(surprises) or 'no surprise'}",
        *(f"left out: {name}" for name in acceptance.left_out),
        sep="\n",
    )
    return 1 if surprises or acceptance.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
