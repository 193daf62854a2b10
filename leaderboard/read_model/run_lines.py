"""Gives a run as one line of a list, and the command that repeats it."""

from __future__ import annotations

from leaderboard.metrics.verdicts import state, verdict_words
from leaderboard.models import Run
from leaderboard.models.staleness import why_stale

RUN_READS = (
    *("kernel_id", "status", "verdict", "speedup", "hardware_id", "world_size", "size", "dtype"),
    *("profile", "judge_version", "device", "created_at", "finished_at", "problem_digest"),
    "placement",
)
LINE_READS = (
    *(*RUN_READS, "kernel__problem__title", "kernel__problem__digest"),
    *("kernel__submission__model__name", "kernel__older_task"),
    "kernel__submission__withholds_source",
)
RUN_COLUMNS = (
    *("id", "problem", "status", "verdict", "speedup", "where", "profile", "judge", "finished"),
    *("placement", "stale"),
)


def run_line(run: Run) -> dict[str, object]:
    return {
        "id": str(run.id),
        "url": run.get_absolute_url(),
        "problem": str(run.kernel.problem),
        "model": run.kernel.submission.model.name,
        "asked": run.created_at,
        "status": run.status,
        "verdict": verdict_words(run.verdict or "", is_timed=run.is_timed),
        "state": state(run.verdict),
        "speedup": run.speedup,
        "where": _where(run),
        "placement": run.placement,
        "profile": run.profile,
        "judge": run.judge_version,
        "finished": run.finished_at,
        "stale": why_stale(run),
    }


def _where(run: Run) -> str:
    """Return `h200x4, 4 ranks, standard, bfloat16`."""
    ranks = f"{run.world_size} ranks" + ("" if run.is_timed else " on one device")
    return f"{run.hardware_id}, {ranks}, {run.size}, {run.dtype}"


def command_of(run: Run) -> str:
    """Return a command for a shell in a clone of this project, with the source as `kernel.py`."""
    flags = {
        "world-size": run.world_size,
        "size": run.size,
        "dtype": run.dtype,
        "profile": run.profile,
        "device": run.device,
        "backend": run.kernel.backend,
    }
    flags |= {} if run.is_timed else {"placement": run.placement}
    options = " ".join(f"--{name} {value}" for name, value in flags.items())
    return f"python -m evaluator run {run.kernel.problem.slug} kernel.py {options}"
