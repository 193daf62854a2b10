"""Shows what trials found: largest errors by rank and by output, and what failed where."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.kit.json_types import Report
from leaderboard.metrics.verdicts import words
from leaderboard.run_pages.run_figures import worst_errors

MOST_FAILURES = 100


def correctness(trials: Sequence[Report]) -> dict[str, object]:
    """Return the context of `_trials.html`."""
    ranks = sorted({check["rank"] for trial in trials for check in trial["checks"]})
    failures = failed_checks(trials)
    return {
        "trials": trial_rows(trials, ranks),
        "rank_numbers": ranks,
        "outputs": output_rows(trials),
        "failures": failures[:MOST_FAILURES],
        "more_failures": max(0, len(failures) - MOST_FAILURES),
        "says": summed_up(trials, len(ranks)),
        "passed": not failures,
    }


def summed_up(trials: Sequence[Report], ranks: int) -> str:
    checks = [check for trial in trials for check in trial["checks"]]
    right = sum(all(c["verdict"] == "ok" for c in trial["checks"]) for trial in trials)
    errors = [check["max_error"] for check in checks if check["max_error"] is not None]
    worst = f", largest error {cells.significant(max(errors))} of the tolerance" if errors else ""
    return f"{right} of {len(trials)} right on {ranks} ranks{worst}"


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


def output_rows(trials: Sequence[Report]) -> list[dict[str, object]]:
    """Return one line for each output over all trials and ranks, where there is more than one."""
    found: dict[str, list[Report]] = {}
    for trial in trials:
        for check in trial["checks"]:
            found.setdefault(check["output"], []).append(check)
    if len(found) < 2:
        return []
    return [{"output": output, "cells": _sums(checks)} for output, checks in found.items()]


def _sums(checks: Sequence[Report]) -> object:
    errors = [check["max_error"] for check in checks if check["max_error"] is not None]
    fits = all(check["verdict"] == "ok" or _is_rough_alone(check) for check in checks)
    return cells.joined(
        (
            cells.count_cell(sum(check["elements"] for check in checks)),
            cells.count_cell(sum(check["mismatched"] for check in checks)),
            cells.margin_cell(max(errors, default=None), fits),
            *_rms_cells(max(checks, key=lambda check: check.get("rms_error") or 0.0)),
        )
    )


def _is_rough_alone(check: Report) -> bool:
    """Return whether each element is right and the output as a whole is not."""
    return check["verdict"] == "output_mismatch" and not check["mismatched"]


def _rms_cells(check: Report) -> list[SafeString]:
    """Return the root mean square of an output's errors and its limit, which reports made before
    0.2.0 lack."""
    error, limit = check.get("rms_error"), check.get("rms_limit")
    fits = error is None or limit is None or error <= limit
    return [cells.margin_cell(error, fits), cells.any_cell(limit)]


def failed_checks(trials: Sequence[Report]) -> list[dict[str, object]]:
    return [
        {
            "trial": trial["trial"],
            "rank": check["rank"],
            "output": check["output"],
            "verdict": words(check["verdict"]),
            "cells": cells.joined(
                (
                    cells.fraction_cell(check["mismatched"], check["elements"]),
                    cells.margin_cell(check["max_error"], _is_rough_alone(check)),
                    *_rms_cells(check),
                )
            ),
        }
        for trial in trials
        for check in trial["checks"]
        if check["verdict"] != "ok"
    ]
