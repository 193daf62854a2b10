"""Classifies how kernels fail, in PKB's words. Pure."""

from __future__ import annotations

CORRECT = "correct"
FAILURE_MODES = (
    "nvcc/syntax errors",
    "tensor shape error",
    "attribute / name / API typo",
    "runtime error",
    "output mismatch",
    "deadlock",
    CORRECT,
)
_MODE_OF_VERDICT = {
    "build_error": "nvcc/syntax errors",
    "shape_mismatch": "tensor shape error",
    "dtype_mismatch": "tensor shape error",
    "import_error": "attribute / name / API typo",
    "missing_entry_point": "attribute / name / API typo",
    "runtime_error": "runtime error",
    "oom": "runtime error",
    "resource_limit": "runtime error",
    "output_mismatch": "output mismatch",
    "nonfinite_output": "output mismatch",
    "late_output": "output mismatch",
    "input_contract_broken": "output mismatch",
    "faster_than_light": "output mismatch",
    "protocol_violation": "output mismatch",
    "timeout": "deadlock",
    "ok": "correct",
}
_MODE_OF_CAUSE = {"shape": "tensor shape error", "api": "attribute / name / API typo"}


def failure_mode(verdict: str, cause: str | None = None) -> str | None:
    """Return one of FAILURE_MODES; None for a verdict that says nothing of the kernel."""
    if verdict == "runtime_error" and cause in _MODE_OF_CAUSE:
        return _MODE_OF_CAUSE[cause]
    return _MODE_OF_VERDICT.get(verdict)
