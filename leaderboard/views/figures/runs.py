"""Figures of one run: bursts, errors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest

from leaderboard.charts import runs as charts
from leaderboard.charts.runs import Margin
from leaderboard.models import Run
from leaderboard.pages import Page, Table, public_page
from leaderboard.views.figures.frame import figure, figure_page

Report = Mapping[str, Any]


@public_page("run")
def bursts(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    timing = report.get("timing")
    if timing is None:
        raise Http404
    spec = charts.burst_samples(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    return figure_page(spec, burst_table(timing), run.kernel.submission)


@public_page("run")
def margins(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    found = measured_margins(report["trials"])
    return figure_page(charts.error_margins(found), margin_table(found), run.kernel.submission)


def run_figures(
    run: Run, trials: Sequence[Report], timing: Report | None
) -> list[dict[str, object]]:
    """The frames of both, as far as there is something to show."""
    made = []
    if timing:
        title, says = (
            "Timed bursts",
            "Every burst in the order it ran; the speedup is the ratio of medians.",
        )
        made.append(figure(f"bursts?run={run.id}", title, says, table=burst_table(timing)))
    found = measured_margins(trials)
    if found and len(trials) > 1:  # one trial is a row of the table, not a picture
        title, says = "How close to the tolerance", "Largest error of each rank."
        made.append(figure(f"margins?run={run.id}", title, says, table=margin_table(found)))
    return made


def burst_table(timing: Report) -> Table:
    pairs = zip(timing["kernel_bursts_us"], timing["baseline_bursts_us"], strict=False)
    rows = [[str(i), *pair] for i, pair in enumerate(pairs, start=1)]
    return Table(columns=("Burst", "Kernel, µs", "Reference, µs"), rows=rows)


def measured_margins(trials: Sequence[Report]) -> list[Margin]:
    return [
        Margin(trial=trial, rank=rank, max_error=error)
        for (trial, rank), (error, _) in worst_errors(trials).items()
        if error is not None
    ]


def margin_table(margins: Sequence[Margin]) -> Table:
    rows = [[f"trial {m.trial}, rank {m.rank}", m.max_error] for m in margins]
    return Table(columns=("Where", "Largest error / tolerance"), rows=rows)


def worst_errors(trials: Sequence[Report]) -> dict[tuple[int, int], tuple[float | None, bool]]:
    """(trial, rank) -> its largest error in units of the tolerance, and whether all passed."""
    found: dict[tuple[int, int], tuple[float | None, bool]] = {}
    for trial in trials:
        for check in trial["checks"]:
            key = (trial["trial"], check["rank"])
            error, passed = found.get(key, (None, True))
            errors = [e for e in (error, check["max_error"]) if e is not None]
            found[key] = (max(errors, default=None), passed and check["verdict"] == "ok")
    return found


def run_called(text: str) -> Run:
    """The run with its report. Raises Http404 for what is no run's id."""
    try:
        key = uuid.UUID(text)
    except ValueError:
        raise Http404 from None
    names = ("kernel__problem", "kernel__submission__model", "hardware")
    found = Run.objects.select_related(*names).filter(pk=key).first()
    if found is None:
        raise Http404
    return found


def _run_of(request: HttpRequest) -> tuple[Run, dict[str, Any]]:
    run = run_called(request.GET.get("run", ""))
    report = run.report
    if report is None:
        raise Http404
    return run, report
