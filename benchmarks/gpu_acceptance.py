"""Every GPU kernel of the tests through the judge: `gpu_acceptance.py OUT [--only NAME,...]`.

Method: `evaluate` judges the kernels of tests/evaluator/gpu one after the other with one warm
server, honest ones first. OUT/acceptance.json holds what is known after each of them. Checked
besides what the headers say: the times of two sleeping kernels differ as their sleeps do, within
5 % (a launch that no sleep hides takes 61 to 76 us, so the plain kernel is compared with the
longest sleep only). The plain kernel, judged again after each threat to the host, is as fast as at
first. No cheat's speedup lies over 5 % above the interval of an honest kernel that does the same.
`--size` judges honest kernels alone, `--done` completes an earlier acceptance.json and reads it by
today's headers. Exit status 0: all judged, all as expected.
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

from judged_lines import provenance, with_rows
from reports_file import keeper

from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.codec import encode
from evaluator.messages.report import Report
from evaluator.sandbox.sandbox import REPOSITORY
from tests.evaluator.kernel_files import KernelFile, all_in, named

MOST_S = {"build_s": 150.0, "verify_s": 60.0, "timed_s": 120.0}  # the budget is for all kernels
GRACE_S, LOG_CHARS = 40.0, 1024
Turn = tuple[str, KernelFile]
Results = dict[str, dict[str, Any]]

PLAIN = "honest/nccl_all_reduce"
SLEEPS_US = {
    PLAIN: 0.0,
    "honest/sleeps_a_fifth_of_a_millisecond": 200.0,
    "honest/sleeps_one_millisecond": 1000.0,
    "honest/sleeps_five_milliseconds": 5000.0,
}
SLEEP_PAIRS = ((0.0, 5000.0), (200.0, 1000.0), (1000.0, 5000.0))
SLEEP_TOLERANCE = 0.05
# A graph gains what a host takes to launch (1.26 and 1.88x in two runs), so only its twin bounds
# `ticks_early`.
THREATS = ("slows_the_baseline", "persisting_cache", "takes_all_memory")
TWINS = {"misbehaving/ticks_early": "honest/captured_graph"}
TWINS |= {f"misbehaving/{name}": PLAIN for name in THREATS}
GAIN_TOLERANCE = 1.05
TOLD = ("verdict", "phase", "cause", "message", "evidence", "ranks", "flags", "isolation")
TIMES = (
    *("kernel_us", "baseline_us", "empty_us", "resolution_us", "before_us", "after_us", "ahead"),
    *("speedup", "speedup_low", "speedup_high", "warmup_calls", "timed_calls"),
)


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    passed: bool
    detail: str


@dataclass(kw_only=True)
class Acceptance:
    """What is known so far, which is what the file holds. `results` are JSON, by name."""

    path: Path
    provenance: dict[str, Any]
    results: Results = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def write(self) -> None:
        head = {
            "provenance": self.provenance,
            "unexpected": self.unexpected,
            "left_out": self.left_out,
            "checks": [vars(check) for check in self.checks],
        }
        rows = [{"name": name, **result} for name, result in self.results.items()]
        partial = self.path.with_suffix(".partial")
        partial.write_text(with_rows(head, rows).replace(f"{REPOSITORY}/", ""))
        partial.replace(self.path)

    @property
    def unexpected(self) -> list[str]:
        return [name for name, result in self.results.items() if result["complaints"]]


def at_size(size: str, only: list[str], world_size: int | None) -> Iterator[Turn]:
    for kernel in all_in("gpu/honest"):
        if not only or kernel.path.stem in only:
            yield f"honest/{kernel.path.stem}", replace(_on_ranks(kernel, world_size), size=size)


def turns(only: list[str], world_size: int | None) -> Iterator[Turn]:
    """Yield the plain kernel, the honest ones, the plain one again, the others; slow ones last."""
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
        "expected": sorted(kernel.verdicts),
        "world_size": kernel.world_size,
        "wall_s": round(time.monotonic() - began, 2),
        **told,
    }


def _told(report: Report) -> dict[str, Any]:
    """Keep neither trials nor single bursts, and of logs their beginnings."""
    fields: dict[str, Any] = encode(report)
    timing = fields["timing"] or {}
    return {
        **{name: fields[name] for name in TOLD},
        "timing": {name: timing[name] for name in TIMES} if timing else None,
        "logs": {str(log.rank): log.text[:LOG_CHARS] for log in report.logs if log.text},
    }


def results_of(document: dict[str, Any]) -> Results:
    """Read what a file holds of each kernel."""
    rows = ({**row} for row in document["rows"])
    return {row.pop("name"): row for row in rows}


def read_again(kernel: KernelFile, result: dict[str, Any]) -> dict[str, Any]:
    """Read an earlier result by today's header; ends of long logs are not kept."""
    if "verdict" not in result:
        return result
    timing = result["timing"] and SimpleNamespace(**result["timing"])
    logs = [SimpleNamespace(text=text) for text in result["logs"].values()]
    told = {**result, "ranks": tuple(result["ranks"]), "timing": timing, "logs": logs}
    complaints = kernel.complaints(cast(Report, SimpleNamespace(**told)))
    return {**result, "expected": sorted(kernel.verdicts), "complaints": complaints}


def checks_of(results: Results) -> list[Check]:
    return [*sleep_checks(results), *steadiness_checks(results), *gain_checks(results)]


def sleep_checks(results: Results) -> Iterator[Check]:
    kernel_us = {
        sleep_us: results[name]["timing"]["kernel_us"]
        for name, sleep_us in SLEEPS_US.items()
        if _is_timed(results, name)
    }
    for short, long in SLEEP_PAIRS:
        if short in kernel_us and long in kernel_us:
            found, expected = kernel_us[long] - kernel_us[short], long - short
            yield Check(
                name=f"sleep of {long:g} us minus sleep of {short:g} us",
                passed=abs(found - expected) <= SLEEP_TOLERANCE * expected,
                detail=f"{found:.1f} us, which should be {expected:g} us",
            )


def steadiness_checks(results: Results) -> Iterator[Check]:
    if not _is_timed(results, PLAIN):
        return
    first = results[PLAIN]["timing"]
    for name in results:
        if name.startswith(f"{PLAIN} ") and _is_timed(results, name):
            later = results[name]["timing"]
            yield Check(
                name=name,
                passed=first["speedup_low"] <= later["speedup_high"]
                and later["speedup_low"] <= first["speedup_high"],
                detail=f"{_interval(later)} here, {_interval(first)} at first; "
                f"{later['kernel_us']:.1f} and {first['kernel_us']:.1f} us",
            )


def gain_checks(results: Results) -> Iterator[Check]:
    for cheat, honest in TWINS.items():
        if _is_timed(results, cheat) and _is_timed(results, honest):
            found, fair = results[cheat]["timing"], results[honest]["timing"]
            yield Check(
                name=f"{cheat} gains nothing over {honest}",
                passed=found["speedup_low"] <= GAIN_TOLERANCE * fair["speedup_high"],
                detail=f"{_interval(found)} against {_interval(fair)}; "
                f"{found['kernel_us']:.1f} and {fair['kernel_us']:.1f} us",
            )


def _is_timed(results: Results, name: str) -> bool:
    return bool(results.get(name, {}).get("timing"))


def _interval(timing: dict[str, Any]) -> str:
    return f"{timing['speedup_low']:.3f} to {timing['speedup_high']:.3f}x"


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
    earlier = json.loads(given.done.read_text()) if given.done else {"rows": []}
    acceptance.results = results_of(earlier)
    _run(acceptance, given)
    if given.done and len(acceptance.results) == len(earlier["rows"]):
        acceptance.provenance = earlier["provenance"]  # nothing was judged here
    acceptance.checks += checks_of(acceptance.results)
    acceptance.write()
    for check in acceptance.checks:
        print(f"{'ok' if check.passed else 'FAIL':<4} {check.name}: {check.detail}")
    surprises, left_out = acceptance.unexpected, acceptance.left_out
    surprises += [check.name for check in acceptance.checks if not check.passed]
    told = f"{len(acceptance.results)} judged; not as expected: {', '.join(surprises) or 'none'}"
    print(told, *(f"left out: {name}" for name in left_out), sep="\n")
    return 1 if surprises or left_out else 0


if __name__ == "__main__":
    sys.exit(main())
