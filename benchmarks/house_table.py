"""The tables of docs/house-kernels.md: `house_table.py [--times | --sizes] REPORTS.jsonl.gz ...`.

REPORTS are what `house_kernels.py --reports` wrote of timed runs; a problem's row is of the last
file that has it. The share of the roofline is the longest of the judge's floors over the time of a
call. `--times` has the three times of judge 10: time to answer, call time and back to back.
`--sizes` has a row for each problem that was timed at `tiny`, and number of ranks: the
speedup at each size, and where between two of them the kernel and NCCL are equally fast, by a
straight line through the speedups' logarithms over that of m * n.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reports_file import read

import problems
from evaluator.messages.roofline_bounds import RooflineBounds

SIZES = ("tiny", "standard", "large")


def rows(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the table in Markdown, by number of the problem; one that was not timed is left out."""
    yield "| problem | on | house, us | NCCL, us | speedup | of the roofline: house | NCCL |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for number, line in _timed(paths):
        yield f"| {number} {cells(line['problem'], line['job']['hardware'], line['report'])} |"


def time_rows(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the table of the three times in Markdown, by number of the problem."""
    yield "| problem | house: answer, call, series | NCCL: answer, call, series | speedup | bound |"
    yield "|---|---|---|---:|---:|"
    for number, line in _timed(paths):
        timing = line["report"]["timing"]
        sides = [" / ".join(map(_us, timing[side].values())) for side in ("kernel", "baseline")]
        bounds = RooflineBounds(**line["report"]["floors"])
        share = f"{bounds.utilisation(timing['kernel_us']):.0%}"
        yield f"| {number} {line['problem']} | {' | '.join(sides)} | {_speedup(timing)} | {share} |"


def _timed(paths: Iterable[Path]) -> list[tuple[int, dict[str, Any]]]:
    """Sort the last timed line of each problem by the problem's number."""
    timed = {number_of(line["problem"]): line for line in read(paths) if line["report"]["timing"]}
    return sorted(timed.items())


def _us(us: float) -> str:
    return f"{us:.1f}" if us < 100 else f"{us:.0f}"


def size_rows(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the table of sizes in Markdown, by number of the problem and ranks."""
    yield f"| problem | ranks | {' | '.join(SIZES)} | as fast as NCCL at m n of |"
    yield f"|---|---:|{'---:|' * (len(SIZES) + 1)}"
    timed: dict[tuple[int, str, int], dict[str, Any]] = defaultdict(dict)
    for line in read(paths):
        job, timing = line["job"], line["report"]["timing"]
        if timing:
            key = number_of(line["problem"]), line["problem"], job["world_size"]
            timed[key][job["size"]] = timing
    wanted = {number for (number, _, _), by_size in timed.items() if "tiny" in by_size}
    for (number, slug, ranks), by_size in sorted(timed.items()):
        if number in wanted:
            told = [_speedup(by_size[size]) if size in by_size else "" for size in SIZES]
            where = crossing(slug, {size: timing["speedup"] for size, timing in by_size.items()})
            last = "" if where is None else f"{where:.1e}"
            yield f"| {number} {slug} | {ranks} | {' | '.join([*told, last])} |"


def crossing(slug: str, speedups: Mapping[str, float]) -> float | None:
    """Return m * n where the speedup is 1, between two sizes that follow each other."""
    sizes = problems.load(problems.find(slug)).problem.sizes
    points = [
        (math.log(sizes[size].m * sizes[size].n), math.log(speedups[size]))
        for size in SIZES
        if size in speedups
    ]
    for (before, fast), (after, slow) in pairwise(points):
        if fast >= 0 > slow or slow >= 0 > fast:
            return math.exp(before + (after - before) * fast / (fast - slow))
    return None


def number_of(slug: str) -> int:
    return problems.load(problems.find(slug)).problem.number


def cells(slug: str, hardware: str, report: dict[str, Any]) -> str:
    timing, bounds = report["timing"], RooflineBounds(**report["floors"])
    times = [timing["kernel_us"], timing["baseline_us"]]
    told = [
        *(f"{us:.0f}" for us in times),
        _speedup(timing),
        *(f"{bounds.utilisation(us):.1%}" for us in times),
    ]
    return " | ".join([slug, hardware, *told])


def _speedup(timing: Mapping[str, float]) -> str:
    low, high = timing["speedup_low"], timing["speedup_high"]
    return f"{timing['speedup']:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--times", action="store_true", help="the three times of judge 10")
    parser.add_argument("--sizes", action="store_true", help="speedups by size")
    given = parser.parse_args()
    table = size_rows if given.sizes else time_rows if given.times else rows
    print("\n".join(table(given.reports)))


if __name__ == "__main__":
    main()
