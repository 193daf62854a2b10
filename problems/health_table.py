"""Write docs/problem-health.md, which says of each problem what each profile lets pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf
from pathlib import Path
from typing import Any

import problems
from problems import ProblemModule
from problems.health import margins

PATH = Path(__file__).parents[1] / "docs" / "problem-health.md"
HEAD = """\
# Problem health

This page tells how well the correctness check of each benchmark problem separates wrong kernels
from right ones. A row names the wrong answers that a check accepts, the right ones that it rejects,
and the room that its tolerance leaves on either side.

Written by `python -m problems audit`; do not edit. Every problem is asked what it says to answers
that skip the work (zeros, a constant, an input handed back, no communication, one rank left out,
another trial's answer, 1 % of the rows stale, inputs cut to the mantissa of the next smaller
format; wires of int8, fp8 or int16 with a scale for each block of values, all at once or one alone,
every second row, one neighbour in place of all ranks, the last element left out, an option ignored,
even numbers of elements), to its own wrong kernels in `problems/mutants.toml`, and to honest ones
that only round differently.
`upstream` is PKB's own inputs at their published size with PKB's `atol = rtol = 1e-2`, asked for
those before the semicolon alone. `hardened` is ours at size `tiny`, with so many
seeded sets of inputs on each of so many world sizes, in float32, bfloat16 and float16; honest
answers are tried on as many as the second number says.

*Worst honest* is the largest error of an honest answer, *cheapest wrong* the smallest of a wrong
one, over dtypes, seeds and world sizes, in tolerances, or of the limit on its root mean square
where that is more: 1 is the limit, and a dash means that no unit exists because exact values
differ. In brackets is which answer that is. [problem-format.md](problem-format.md) says more.
"""
STANDARD = """
## At size `standard`

The same of hardened inputs at the size that counts: a value lost among many is harder to see there,
and rounding has longer tails. All ranks shared one GPU, or ran on processors (CPU).
"""
COLUMNS = (
    *("#", "problem", "upstream accepts wrongly", "upstream rejects wrongly"),
    *("hardened errs on", "worst honest", "cheapest wrong", "seeds x world sizes"),
)
STANDARD_COLUMNS = ("#", "problem", *COLUMNS[4:], "on")


def write(health: Mapping[str, Mapping[str, Any]]) -> None:
    PATH.write_text(table(health))


def table(health: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [_row(name, health) for name in problems.names()]
    notes = [
        f"* {module.problem.number} `{module.slug}`: {module.problem.unscored_reason}"
        for module in map(problems.load, problems.names())
        if not module.problem.scored
    ]
    lines = [_line(COLUMNS), _line(["---"] * len(COLUMNS)), *map(_line, rows)]
    unscored = ["", "## Never counted under `hardened`", "", *notes] if notes else []
    parts = [HEAD, *lines, *unscored, STANDARD, *_standard_lines(health)]
    return "\n".join(parts) + "\n"


def _standard_lines(health: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a row for each problem that was screened at `standard`."""
    rows = []
    for module in map(problems.load, problems.names()):
        if found := health.get(module.slug, {}).get("hardened-standard"):
            device = {"cuda": "GPU", "cpu": "CPU"}[found["device"]]
            rows.append([*_title(module), *_margin_cells(found), device])
    return [_line(STANDARD_COLUMNS), _line(["---"] * len(STANDARD_COLUMNS)), *map(_line, rows)]


def _title(module: ProblemModule) -> tuple[str, str]:
    return str(module.problem.number), f"`{module.slug}`"


def _row(name: str, health: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    module = problems.load(name)
    upstream, hardened = (
        health.get(module.slug, {}).get(profile) for profile in ("upstream", "hardened")
    )
    if upstream is None or hardened is None:
        return [*_title(module), "not screened yet", *[""] * (len(COLUMNS) - 3)]
    return [
        *_title(module),
        ", ".join(_erring(upstream, honest=False)) or "nothing",
        ", ".join(_erring(upstream, honest=True)) or "nothing",
        *_margin_cells(hardened),
    ]


def _margin_cells(found: Mapping[str, Any]) -> list[str]:
    """Return what the check errs on, the room on either side, and how many inputs tell."""
    worst_honest, cheapest_wrong = margins(found["findings"])
    cheapest = [row["answer"] for row in found["findings"] if _reaches(row, cheapest_wrong)]
    erring = [*_erring(found, honest=False), *_erring(found, honest=True)]
    seeds = dict.fromkeys((found["seeds"], found["honest_seeds"]))
    worlds = ", ".join(map(str, found["world_sizes"]))
    return [
        ", ".join(erring) or "nothing",
        f"{worst_honest:.2g}",
        "-" if isinf(cheapest_wrong) else f"{cheapest_wrong:.2g} ({cheapest[0]})",
        f"{', '.join(map(str, seeds))} x ({worlds})",
    ]


def _reaches(row: Mapping[str, Any], error: float) -> bool:
    return not row["honest"] and error in row["errors"].values()


def _erring(found: Mapping[str, Any], *, honest: bool) -> list[str]:
    return [
        row["answer"]
        for row in found["findings"]
        if row["honest"] is honest and row["accepted"] is (not honest)
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
