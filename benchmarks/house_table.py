"""The table of docs/house-kernels.md: `house_table.py REPORTS.jsonl.gz ...`.

REPORTS are what `house_kernels.py --reports` wrote of timed runs; a problem's row is of the last
file that has it. The share of the roofline is the longest of the judge's floors over the time of a
call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reports_file import read

import problems
from evaluator.messages.roofline_bounds import RooflineBounds


def rows(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the table in Markdown, by number of the problem; one that was not timed is left out."""
    yield "| problem | on | house, us | NCCL, us | speedup | of the roofline: house | NCCL |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    timed = {number_of(line["problem"]): line for line in read(paths) if line["report"]["timing"]}
    for number, line in sorted(timed.items()):
        yield f"| {number} {cells(line['problem'], line['job']['hardware'], line['report'])} |"


def number_of(slug: str) -> int:
    return problems.load(problems.find(slug)).problem.number


def cells(slug: str, hardware: str, report: dict[str, Any]) -> str:
    timing, bounds = report["timing"], RooflineBounds(**report["floors"])
    times = [timing["kernel_us"], timing["baseline_us"]]
    low, high = timing["speedup_low"], timing["speedup_high"]
    speedup = f"{timing['speedup']:.2f} ({low:.2f} to {high:.2f})"
    told = [
        *(f"{us:.0f}" for us in times),
        speedup,
        *(f"{bounds.utilisation(us):.1%}" for us in times),
    ]
    return " | ".join([slug, hardware, *told])


if __name__ == "__main__":
    print("\n".join(rows(map(Path, sys.argv[1:]))))
