"""Classifies how kernels fail, in PKB's words and one of ours: an API that does not exist. Pure.

A further failure mode is one more row of ENDINGS; stored counts go by name, so that old ones stay
true. `static/css/site.css` colours its letter in the matrix.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from leaderboard.metrics.verdicts import words

CORRECT = "correct"
NO_SUCH_API = "API that does not exist"


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
    Ending(NO_SUCH_API, "a", "#0072B2", ()),
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
_MODE_OF_CAUSE = {
    "shape": "tensor shape error",
    "api": "attribute / name / API typo",
    "compilation": "runtime error",
}
# Stands for a cause of the judge's where the evidence names what no library has.
MISSING_API = "missing_api"
_LIBRARIES = r"cu|CU|nccl|NCCL|nvshmem|NVSHMEM|nv|__|at::|c10|torch|cub|thrust|cute|cutlass"
_IS_MISSING = re.compile(
    r'(?:namespace|class|struct|enum) "[^"]{1,200}" has no member'
    rf'|identifier "(?:{_LIBRARIES})[^"]{{0,200}}" is undefined'
    r"|undefined (?:symbol|reference)|is not a member of|has no member named"
    r"|module '[\w.]{1,200}' has no attribute"
    r"|'(?:torch|triton)\.[\w.]{1,200}' object has no attribute"
    r"|No module named|cannot import name|cannot open source file"
    r"|fatal error: [^\n:]{1,200}: No such file"
)
_OF_CODE = ("build_error", "import_error", "runtime_error")


def cause_of(verdict: str, cause: str | None, evidence: str | None) -> str | None:
    """Return the judge's cause, or MISSING_API where a compiler, a linker or an import says so. The
    evidence is of the submission's own: forged, it changes but what is said of a failure."""
    is_missing = verdict in _OF_CODE and evidence and _IS_MISSING.search(evidence)
    return MISSING_API if is_missing else cause


def mode_of(verdict: str, cause: str | None, evidence: str | None) -> str | None:
    """Return the failure mode of a run that is told by its evidence, too."""
    return failure_mode(verdict, cause_of(verdict, cause, evidence))


def cause_in_words(verdict: str, cause: str | None, evidence: str | None) -> str:
    """Return why a run failed: `race between calls`; empty where that is not known."""
    found = cause_of(verdict, cause, evidence)
    return NO_SUCH_API if found == MISSING_API else words(found or "")


def failure_mode(verdict: str, cause: str | None = None) -> str | None:
    """Return one of FAILURE_MODES; None for a verdict that says nothing of the kernel."""
    if verdict in _OF_CODE and cause == MISSING_API:
        return NO_SUCH_API
    if verdict in ("runtime_error", "timeout") and cause in _MODE_OF_CAUSE:
        return _MODE_OF_CAUSE[cause]
    return _MODE_OF_VERDICT.get(verdict)
