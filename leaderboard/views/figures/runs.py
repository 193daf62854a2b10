"""Figures of one run: bursts, errors, timelines."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest

from leaderboard.charts import runs as charts
from leaderboard.charts.runs import Bin, Event, Margin
from leaderboard.models import Run
from leaderboard.pages import Page, Table, public_page
from leaderboard.views.figures.frame import figure, figure_page

Report = Mapping[str, Any]
MOST_EVENTS = 2_000
MOST_LISTED = 50


@public_page("run")
def bursts(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    timing = report.get("timing")
    if timing is None:
        raise Http404
    spec = charts.burst_samples(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    return figure_page(spec, burst_table(timing), run.kernel.submission)


@public_page("run")
def burst_histogram(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    timing = report.get("timing")
    if timing is None:
        raise Http404
    bins = charts.burst_bins(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    return figure_page(charts.burst_histogram(bins), bin_table(bins), run.kernel.submission)


@public_page("run")
def timeline(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    events = longest_events(report.get("timelines", ()), MOST_EVENTS)
    if not events:
        raise Http404
    return figure_page(charts.timeline(events), event_table(events), run.kernel.submission)


@public_page("run")
def margins(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    found = measured_margins(report["trials"])
    return figure_page(charts.error_margins(found), margin_table(found), run.kernel.submission)


def burst_figures(run: Run, timing: Report | None) -> list[dict[str, object]]:
    if timing is None:
        return []
    samples = timing["kernel_bursts_us"], timing["baseline_bursts_us"]
    title, says = (
        "How long bursts took",
        "How many bursts took so long a call; time is drawn in ratios.",
    )
    made = figure(
        f"burst-histogram?run={run.id}", title, says, table=bin_table(charts.burst_bins(*samples))
    )
    title, says = (
        "Timed bursts",
        "Every burst in the order it ran; the speedup is a ratio of medians.",
    )
    return [made, figure(f"bursts?run={run.id}", title, says, table=burst_table(timing))]


def margin_figure(run: Run, trials: Sequence[Report]) -> dict[str, object] | None:
    """One trial is a row of a table, not a picture."""
    found = measured_margins(trials)
    if not found or len(trials) < 2:
        return None
    title, says = "How close to the tolerance", "Largest error of each rank."
    return figure(f"margins?run={run.id}", title, says, table=margin_table(found))


def timeline_figure(run: Run, timelines: Sequence[Report]) -> dict[str, object] | None:
    """With the longest events as its table; the data link has as many as are drawn."""
    longest = longest_events(timelines, MOST_LISTED)
    if not longest:
        return None
    recorded = sum(len(found["events"]) + found["dropped_events"] for found in timelines)
    drawn = min(MOST_EVENTS, sum(len(found["events"]) for found in timelines))
    which = "all" if drawn == recorded else f"the longest {drawn:,} of"
    says = f"What ran on each rank and stream in two calls: {which} {recorded:,} events."
    table = event_table(sorted(longest, key=lambda event: -event.duration_us))
    made = figure(f"timeline?run={run.id}", "What ran when", says, table=table, tall=True)
    return {**made, "table_says": f"The longest {len(longest)} as a table"}


def burst_table(timing: Report) -> Table:
    pairs = zip(timing["kernel_bursts_us"], timing["baseline_bursts_us"], strict=False)
    rows = [[str(i), *pair] for i, pair in enumerate(pairs, start=1)]
    return Table(columns=("Burst", "Kernel, µs", "Reference, µs"), rows=rows)


def bin_table(bins: Sequence[Bin]) -> Table:
    rows = [
        [f"{found.low_us:.4g} to {found.high_us:.4g}", found.kernel, found.baseline]
        for found in bins
        if found.kernel or found.baseline
    ]
    return Table(columns=("Microseconds a call", "Kernel, bursts", "Reference, bursts"), rows=rows)


def longest_events(timelines: Sequence[Report], most: int) -> list[Event]:
    """At most so many over all ranks, in the order in which they began."""
    found = [
        Event(
            rank=timeline["rank"],
            queue="stream" if timeline["device"] == "cuda" else "thread",
            lane=event["stream"],
            name=event["name"],
            kind=event["kind"],
            start_us=event["start_us"],
            duration_us=event["duration_us"],
        )
        for timeline in timelines
        for event in timeline["events"]
    ]
    longest = sorted(found, key=lambda event: event.duration_us, reverse=True)[:most]
    return sorted(longest, key=lambda event: (event.rank, event.start_us))


def event_table(events: Sequence[Event]) -> Table:
    columns = ("Event", "Kind", "Rank", "Stream or thread", "Start, µs", "Duration, µs")
    return Table(
        columns=columns,
        rows=[
            [
                e.name,
                charts.KIND_NAMES.get(e.kind, e.kind),
                e.rank,
                e.lane,
                e.start_us,
                e.duration_us,
            ]
            for e in events
        ],
    )


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
