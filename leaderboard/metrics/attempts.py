"""Lists runs as a Summary does, and sums them up. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self
from uuid import UUID

from leaderboard.kit.json_types import JsonDict
from leaderboard.metrics.board_numbers import MEASURED
from leaderboard.metrics.failures import cause_of
from leaderboard.metrics.mechanisms import NCCL
from leaderboard.metrics.tallies import modes_of

AttemptSummary = JsonDict
# The key of an attempt that failed elsewhere and counts here as well.
CARRIED = "carried"


class JudgedRun(NamedTuple):
    """Holds of a counted run as much as a summary needs; fields are named as queries name them.
    `measured` holds the columns MEASURED."""

    kernel__submission_id: int
    kernel__problem_id: int
    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str
    placement: str
    kernel__attempt: int
    id: UUID
    verdict: str
    cause: str | None
    evidence: str | None
    speedup: float | None
    speedup_low: float | None
    baseline_us: float | None
    kernel__backend: str
    mechanisms: list[str]
    kernel__source_id: str
    kernel__making__output_tokens: int | None
    kernel__making__answers_without_usage: int | None
    kernel__making__cost_usd: float | None
    measured: Mapping[str, float | None]

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """Return a run of the values of JUDGED."""
        own = len(cls._fields) - 1
        return cls._make((*row[:own], dict(zip(MEASURED, row[own:], strict=True))))


JUDGED = (*JudgedRun._fields[:-1], *MEASURED)


def entry_of(run: JudgedRun) -> AttemptSummary:
    """Return a run as a Summary lists it; one that was too fast to be true keeps its verdict and
    loses its numbers. Tokens are not told where some answers came without any."""
    is_correct = run.verdict == "ok"
    is_timed = is_correct and run.speedup is not None
    return {
        "attempt": run.kernel__attempt,
        "run": str(run.id),
        "verdict": run.verdict,
        "cause": cause_of(run.verdict, run.cause, run.evidence),
        "speedup": run.speedup if is_correct else None,
        "low": run.speedup_low if is_correct else None,
        **{name: value if is_timed else None for name, value in run.measured.items()},
        "baseline_us": run.baseline_us if is_correct else None,
        "backend": run.kernel__backend,
        "mechanisms": run.mechanisms,
        "nccl": NCCL in run.mechanisms,
        "kernel": run.kernel__source_id,
        "output_tokens": None
        if run.kernel__making__answers_without_usage
        else run.kernel__making__output_tokens,
        "usd": run.kernel__making__cost_usd,
    }


def summed(attempts: Sequence[AttemptSummary]) -> JsonDict:
    """Return what a Summary holds besides its place."""
    correct = [entry for entry in attempts if entry["verdict"] == "ok"]
    best = max(correct, key=lambda entry: entry["speedup"] or 0.0, default={})
    taken = [us for entry in attempts if (us := entry["baseline_us"]) is not None]
    return {
        "made": len(attempts),
        "correct": len(correct),
        "best_speedup": best.get("speedup"),
        "best_low": best.get("low"),
        "utilisation": best.get("utilisation"),
        "best_run_id": UUID(best["run"]) if best else None,
        # To the nanosecond.
        "baseline_us": round(statistics.median(taken), 3) if taken else None,
        "modes": modes_of(attempts),
        "attempts": list(attempts),
    }
