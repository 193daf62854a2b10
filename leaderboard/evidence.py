"""What a finished run shows: verdict, trials, timing, environment, logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard import cells
from leaderboard.models import Run
from leaderboard.verdicts import state, words
from leaderboard.views.figures.runs import run_figures, worst_errors

Report = Mapping[str, Any]


def run_facts(run: Run) -> dict[str, object]:
    """A run in words; every text in it may come from a submission."""
    return {
        "id": str(run.id),
        "status": run.status,
        "verdict": words(run.verdict) if run.verdict else "",
        "state": state(run.verdict),
        "phase": run.phase,
        "message": run.message,
        "cause": run.cause,
        "evidence": run.evidence,
        "ranks": ", ".join(str(rank) for rank in run.ranks),
        "flags": run.flags,
        "hardware": run.hardware_id,
        "world_size": run.world_size,
        "size": run.size,
        "dtype": run.dtype,
        "profile": run.profile,
        "isolation": run.isolation,
        "judge_version": run.judge_version,
    }


def evidence(run: Run, report: Report | None) -> dict[str, object]:
    """Context of `_verdict.html`. A run that failed for our reasons has no report."""
    report = report or {}
    timing, trials = report.get("timing"), report.get("trials", ())
    ranks = sorted({check["rank"] for trial in trials for check in trial["checks"]})
    low, high = run.speedup_low, run.speedup_high
    return {
        "run": run_facts(run),
        "timing": timing,
        "distinguishable": low is None or high is None or not low <= 1.0 <= high,
        "rank_numbers": ranks,
        "trials": trial_rows(trials, ranks),
        "figures": run_figures(run, trials, timing),
        "environment": environment(report),
        "logs": log_rows(report),
    }


def trial_rows(trials: Sequence[Report], ranks: Sequence[int]) -> list[dict[str, object]]:
    worst = worst_errors(trials)
    rows = []
    for trial in trials:
        made = [cells.count_cell(trial["m"]), cells.count_cell(trial["n"])]
        for rank in ranks:
            error, passed = worst.get((trial["trial"], rank), (None, True))
            made.append(cells.margin_cell(error, passed))
        row = {"trial": trial["trial"], "note": trial["note"], "cells": cells.joined(made)}
        rows.append(row)
    return rows


def environment(report: Report) -> list[dict[str, str]]:
    found = report.get("environment")
    if not found:
        return []
    facts = {"Host": found["host"], "Hardware": found["hardware"]}
    facts |= dict(sorted(found["versions"].items()))
    facts |= dict(sorted(found.get("settings", {}).items()))
    seconds = report.get("phase_s", {})
    facts |= {f"{phase} phase": f"{cells.significant(s)} s" for phase, s in seconds.items()}
    return [{"name": name, "value": value} for name, value in facts.items()]


def log_rows(report: Report) -> list[dict[str, object]]:
    """The first rank's log is open where something went wrong."""
    failed = report.get("verdict") != "ok"
    return [
        {**log, "open": failed and i == 0}
        for i, log in enumerate(report.get("logs", ()))
        if log["text"]
    ]
