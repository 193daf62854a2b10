"""Draws the figures of one run: timed calls, errors, timelines."""

from __future__ import annotations

import statistics
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.delivery.readers import refuse_strangers
from leaderboard.figures.charts import runs as charts
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.charts.runs import Bin, LaneEvent, Margin
from leaderboard.figures.findings import said
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, Figure, figure, framed
from leaderboard.kit.json_types import Report
from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.models import Run
from leaderboard.read_model.withholding import told_run
from leaderboard.run_pages.timeline_events import longest_events
from leaderboard.run_pages.times import times_single_calls

MOST_EVENTS = 2_000


@figure(
    "burst-histogram",
    "How long timed calls took",
    "How many calls took how long; time is drawn in ratios.",
    "run",
)
def burst_histogram(request: HttpRequest) -> Drawn:
    run, report = _run_of(request)
    timing = _timing(report)
    bins = charts.burst_bins(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    spec = charts.burst_histogram(bins, plural_of(timing))
    return _told(burst_histogram, timing, _drawn(run, spec, bin_table(bins, timing)))


@figure(
    "bursts",
    "Timed calls",
    "Every call in the order it ran; the speedup is a ratio of medians.",
    "run",
)
def bursts(request: HttpRequest) -> Drawn:
    run, report = _run_of(request)
    timing = _timing(report)
    samples = (timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    spec = charts.burst_samples(*samples, noun_of(timing))
    return _told(bursts, timing, _drawn(run, spec, burst_table(timing)))


@figure(
    "last-rank",
    "Which rank is last",
    "In how many batches each rank took longest; the line is where all are last as often.",
    "run",
)
def last_rank(request: HttpRequest) -> Drawn:
    run, report = _run_of(request)
    batches = _timing(report).get("rank_last") or []
    table = Table(columns=("Rank", "Batches in which it was last"), rows=list(enumerate(batches)))
    drawn = _drawn(run, charts.times_last(batches), table)
    return replace(drawn, title=last_title(batches))


def noun_of(timing: Report) -> str:
    """Return what a sample of a timing is of."""
    return "call" if times_single_calls(timing) else "batch"


def plural_of(timing: Report) -> str:
    return "calls" if times_single_calls(timing) else "batches"


def _words(one: Figure, timing: Report) -> tuple[str, str]:
    """Return the title and the sentence of a figure of samples: of calls, as it stands, or of the
    batches of judges up to 9."""
    if times_single_calls(timing):
        return one.title, one.says
    says = one.says.replace("calls took how long", "batches took so long a call")
    return one.title.replace("calls", "batches"), says.replace("Every call", "Every batch")


def _told(one: Figure, timing: Report, drawn: Drawn) -> Drawn:
    _, says = _words(one, timing)
    return replace(drawn, title=sample_title(one, timing), says=says)


def sample_title(one: Figure, timing: Report) -> str:
    """Return the title of a figure of samples with what it shows: the middle times, or how far nine
    tenths of the samples lie apart."""
    title, both = _words(one, timing)[0], []
    for whose, key in (("kernel", "kernel_bursts_us"), ("reference", "baseline_bursts_us")):
        times = timing[key]
        if len(times) < LEAST_DRAWN:
            return title
        middle = statistics.median(times)
        if one is burst_histogram:
            both.append(f"{whose} {cells.microseconds_text(middle)}")
        else:
            tenths = statistics.quantiles(times, n=10, method="inclusive")
            spread = (tenths[-1] - tenths[0]) / middle if middle else 0.0
            both.append(f"{whose} within {cells.share_text(spread)}")
    what = "in the median" if one is burst_histogram else "from the 10th to the 90th percentile"
    return said(title, f"{', '.join(both)}, {what}")


def last_title(batches: Sequence[int]) -> str:
    """Return the title with the rank that is last most often."""
    most, every = max(batches, default=0), sum(batches)
    if not most:
        return last_rank.title
    rank = list(batches).index(most)
    return said(last_rank.title, f"rank {rank}, in {cells.share_text(most / every)} of batches")


def margin_title(found: Sequence[Margin]) -> str:
    """Return the title with the largest error of all."""
    worst = max(found, key=lambda one: one.max_error, default=None)
    if worst is None:
        return margins.title
    error = cells.significant(worst.max_error)
    return said(margins.title, f"largest error {error} tolerances, on rank {worst.rank}")


def timeline_title(timelines: Sequence[Report]) -> str:
    """Return the title with the kind of events that took most time, over all ranks."""
    took = defaultdict[str, float](float)
    for found in timelines:
        for event in found["events"]:
            took[event["kind"]] += event["duration_us"]
    total = sum(took.values())
    if not total:
        return timeline.title
    kind = max(took, key=lambda one: took[one])
    share = cells.share_text(took[kind] / total)
    return said(
        timeline.title, f"{charts.KIND_NAMES.get(kind, kind)} takes most, {share} of the time"
    )


def _timing(report: Report) -> Report:
    timing: Report | None = report.get("timing")
    if timing is None:
        raise Http404
    return timing


@figure("timeline", "What ran when", "What ran on each rank and stream.", "run", tall=True)
def timeline(request: HttpRequest) -> Drawn:
    run, report = _run_of(request)
    timelines = report.get("timelines", ())
    events = longest_events(timelines, MOST_EVENTS)
    if not events:
        raise Http404
    drawn = _drawn(run, charts.timeline(events), event_table(events))
    return replace(drawn, title=timeline_title(timelines), says=timeline_says(timelines))


@figure("margins", "How close to the tolerance", "Largest error of each rank.", "run")
def margins(request: HttpRequest) -> Drawn:
    run, report = _run_of(request)
    found = measured_margins(report["trials"])
    drawn = _drawn(run, charts.error_margins(found), margin_table(found))
    return replace(drawn, title=margin_title(found))


def _drawn(run: Run, spec: Spec, table: Table) -> Drawn:
    problem = run.kernel.problem
    address = url("problem", problem.number, problem.slug)
    return Drawn(
        spec=spec,
        table=table,
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text=problem.title, url=address),
            Crumb(text="Run", url=run.get_absolute_url()),
        ),
        under=f"{problem} by {visible(run.kernel.submission.model.name)}",
        submission=run.kernel.submission,
    )


def burst_figures(run: Run, timing: Report | None) -> list[dict[str, object]]:
    if not timing:
        return []
    query = f"run={run.id}"
    shown = [
        framed(one, query, title=sample_title(one, timing), says=_words(one, timing)[1])
        for one in (burst_histogram, bursts)
    ]
    last = timing.get("rank_last", ())
    is_told = sum(last) >= LEAST_DRAWN
    return [*shown, framed(last_rank, query, title=last_title(last))] if is_told else shown


def margin_figure(run: Run, trials: Sequence[Report]) -> dict[str, object] | None:
    """Frame the errors of several trials: one trial is a row of a table, not a picture."""
    errors = (check["max_error"] for trial in trials for check in trial["checks"])
    is_told = len(trials) > 1 and any(error is not None for error in errors)
    title = margin_title(measured_margins(trials))
    return framed(margins, f"run={run.id}", title=title) if is_told else None


def timeline_figure(run: Run, timelines: Sequence[Report]) -> dict[str, object] | None:
    if not any(found["events"] for found in timelines):
        return None
    title, says = timeline_title(timelines), timeline_says(timelines)
    return framed(timeline, f"run={run.id}", title=title, says=says)


def timeline_says(timelines: Sequence[Report]) -> str:
    recorded = sum(len(found["events"]) + found["dropped_events"] for found in timelines)
    drawn = min(MOST_EVENTS, sum(len(found["events"]) for found in timelines))
    which = "all" if drawn == recorded else f"the longest {drawn:,} of"
    told = f"What ran on each rank and stream in two calls: {which} {recorded:,} events."
    return f"{told} A communication waits until the last rank has begun its own."


def burst_table(timing: Report) -> Table:
    pairs = zip_longest(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    rows = [[str(i), *pair] for i, pair in enumerate(pairs, start=1)]
    return Table(columns=(noun_of(timing).capitalize(), "Kernel, µs", "Reference, µs"), rows=rows)


def bin_table(bins: Sequence[Bin], timing: Report) -> Table:
    rows = [
        [f"{found.low_us:.4g} to {found.high_us:.4g}", found.kernel, found.baseline]
        for found in bins
        if found.kernel or found.baseline
    ]
    plural = plural_of(timing)
    columns = ("Microseconds a call", f"Kernel, {plural}", f"Reference, {plural}")
    return Table(columns=columns, rows=rows)


def event_table(events: Sequence[LaneEvent]) -> Table:
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
    """Return by (trial, rank) the largest error over the tolerance, and whether all passed."""
    found: dict[tuple[int, int], tuple[float | None, bool]] = {}
    for trial in trials:
        for check in trial["checks"]:
            key = (trial["trial"], check["rank"])
            error, passed = found.get(key, (None, True))
            errors = [e for e in (error, check["max_error"]) if e is not None]
            found[key] = (max(errors, default=None), passed and check["verdict"] == "ok")
    return found


def run_called(text: str) -> Run:
    """Return the run with its report. Raises Http404 for what is no run's id."""
    try:
        key = uuid.UUID(text)
    except ValueError:
        raise Http404 from None
    named = Run.objects.select_related(
        *("kernel__problem", "kernel__source__ruling", "kernel__submission__model", "ruling")
    )
    return get_object_or_404(named.defer("kernel__problem__payload"), pk=key)


def _run_of(request: HttpRequest) -> tuple[Run, Report]:
    named = run_called(request.GET.get("run", ""))
    refuse_strangers(request, named.kernel.submission)
    run = told_run(request.user, named)
    report = run.report
    if report is None:
        raise Http404
    return run, report
