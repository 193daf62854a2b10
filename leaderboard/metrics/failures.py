"""Classifies how kernels fail, in PKB's words. Pure.

A further failure mode is one more row of ENDINGS; stored counts go by name, so that old ones stay
true. `static/css/site.css` colours its letter in the matrix.
"""

from __future__ import annotations

from typing import NamedTuple

CORRECT = "correct"


class Ending(NamedTuple):
    """Describes how an attempt may end: its `letter` in the matrix, its `colour` in figures, and
    the verdicts that mean it."""

    mode: str
    letter: str
    colour: str
    verdicts: tuple[str, ...]


# The further an attempt came, the later.
ENDINGS = (
    Ending("nvcc/syntax errors", "c", "#D55E00", ("build_error",)),
    Ending("tensor shape error", "s", "#E69F00", ("shape_mismatch", "dtype_mismatch")),
    Ending(
        "attribute / name / API typo",
        "n",
        "#CC79A7",
        ("import_error", "missing_entry_point"),
    ),
    Ending("runtime error", "r", "#8C8C8C", ("runtime_error", "oom", "resource_limit")),
    Ending(
        "output mismatch",
        "m",
        "#56B4E9",
        (
            *("output_mismatch", "nonfinite_output", "late_output", "input_contract_broken"),
            *("faster_than_light", "protocol_violation"),
        ),
    ),
    Ending("deadlock", "d", "#5A4FA2", ("timeout",)),
    Ending(CORRECT, "", "#009E73", ("ok",)),
)
FAILURE_MODES = tuple(ending.mode for ending in ENDINGS)
_MODE_OF_VERDICT = {verdict: ending.mode for ending in ENDINGS for verdict in ending.verdicts}
_MODE_OF_CAUSE = {"shape": "tensor shape error", "api": "attribute / name / API typo"}


def failure_mode(verdict: str, cause: str | None = None) -> str | None:
    """Return one of FAILURE_MODES; None for a verdict that says nothing of the kernel."""
    if verdict == "runtime_error" and cause in _MODE_OF_CAUSE:
        return _MODE_OF_CAUSE[cause]
    return _MODE_OF_VERDICT.get(verdict)
