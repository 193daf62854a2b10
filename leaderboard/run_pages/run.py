"""Serves the page of a run, with its CSV: followed while it goes on, its evidence afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from leaderboard.delivery.pages import Crumb, Page, Table, choice, public_page
from leaderboard.delivery.readers import refuse_strangers
from leaderboard.kit.durations import spelt
from leaderboard.kit.json_types import JsonDict, JsonObject, Report
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics.floors import FLOOR_WORDS
from leaderboard.models import Moderation, Run, Status, Visibility
from leaderboard.models.abilities import waiting_for
from leaderboard.models.choices import PHASES, longest_s
from leaderboard.models.rulings import told
from leaderboard.models.runs import FINAL
from leaderboard.models.staleness import not_scored, why_stale
from leaderboard.models.waiting import ahead_of, no_host, tried, waited_s
from leaderboard.read_model.withholding import WITHHELD, closed_to, declines_told, hushed
from leaderboard.run_pages.evidence import contents, evidence, run_facts
from leaderboard.run_pages.reproduce import reproduction
from leaderboard.run_pages.run_figures import run_called
from leaderboard.run_pages.times import call_times

ReportRows = Iterator[list[object]]
CHECK_COLUMNS = (
    *("trial", "rank", "output", "verdict", "elements", "mismatched"),
    *("max_error", "rms_error", "rms_limit"),
)
BURST_COLUMNS = ("burst", "kernel_us", "baseline_us")
TIME_COLUMNS = ("time", "kernel_us", "baseline_us", "scored")
LIMIT_COLUMNS = ("limit", "us")
SUMS = (
    *("span_us", "compute_us", "communication_us", "overlap_us", "unknown_us", "idle_us"),
    *("graph_launches", "dropped_events"),
)
RANK_COLUMNS = ("rank", "call_us", "last_batches", *SUMS)
GPU_STATE = ("name", "sm_mhz", "memory_mhz", "temperature_c", "power_w")
GPU_COLUMNS = ("gpu", *GPU_STATE, "throttle_reasons")
MECHANISM_COLUMNS = ("tag", "evidence", "detail")
# What of its record the page shows by itself.
RECORDED = (
    *("queue_position", "waiting_s", "host", "declines", "waits_for", "practice"),
    *("ruling", "no_host", "tried", "not_scored"),
)
# Profiling is optional and teardown takes no visible time: readers see these.
SHOWN_PHASES = ("queued", "build", "verify", "timed")


def run(request: HttpRequest, run_id: uuid.UUID, form: str = "html") -> HttpResponseBase:
    """Serve a run's page; a finished run never changes, so its page is cached like any other."""
    is_final = Run.objects.filter(pk=run_id, status__in=FINAL).exists()
    return (finished if is_final else followed)(request, form=form, run_id=run_id)


def page_of(request: HttpRequest, run_id: uuid.UUID) -> Page:
    named = run_called(str(run_id))
    refuse_strangers(request, named.kernel.submission)
    is_closed = bool(closed_to(request.user, [named.kernel]))
    found = hushed(named) if is_closed else named
    table = choice(request, "table", list(TABLES))
    submission, problem = found.kernel.submission, found.kernel.problem
    waiting = ahead_of(found) + 1 if found.status == Status.QUEUED else None
    record = run_record(found, waiting, declines_told(request.user, found))
    text = None if is_closed else found.kernel.source.text
    report = found.report
    shown = {
        **(evidence(found, report, text) if found.verdict else {}),
        "reproduce": reproduction(found, f"{found.get_absolute_url()}/bundle.zip", text),
    }
    return Page(
        template="run.html",
        section="",
        context={
            **shown,
            "run": {**run_facts(found, report), **_facts(found, record)},
            "contents": contents(shown),
            "open": not found.is_final,
            "withheld": WITHHELD if is_closed else "",
            "lines_url": "" if text is None else kernel_at(found.kernel.source_id, found.pk),
            "phases": phase_steps(found),
        },
        data={**record, "report": report},
        table=run_table(table, report) if report else None,
        private=submission.visibility == Visibility.PRIVATE,
        unlisted=submission.visibility != Visibility.PUBLIC,
        varies=submission.withholds_source,
        of=submission,
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text=problem.title, url=problem.get_absolute_url()),
            Crumb(text="Run"),
        ),
    )


finished = public_page("table")(page_of)
followed = public_page("table", live=True)(page_of)


def _facts(found: Run, record: JsonObject) -> dict[str, object]:
    submission, problem = found.kernel.submission, found.kernel.problem
    return {
        **record["progress"],
        **{name: record[name] for name in RECORDED},
        "waiting": spelt(record["waiting_s"]),
        "elapsed": "–" if record["elapsed_s"] is None else spelt(record["elapsed_s"]),
        "most": spelt(longest_s(found.device)),
        "cancel_url": "" if found.is_final else url("cancel-run", found.pk),
        "cancel_requested": found.cancel_requested,
        "problem": str(problem),
        "problem_url": problem.get_absolute_url(),
        "model": submission.model.name,
        "moderation": "" if submission.moderation == Moderation.ACCEPTED else submission.moderation,
        "submission_url": submission.get_absolute_url(),
        "digest": found.kernel.source_id,
        "kernel_url": kernel_at(found.kernel.source_id, found.pk),
    }


def run_record(found: Run, queue_position: int | None, declines: Sequence[JsonDict]) -> JsonDict:
    """Return what the page asks for while it waits; the same keys as in the API."""
    return {
        "id": str(found.id),
        "status": found.status,
        "phase": found.phase,
        "progress": {"done": found.progress_done, "total": found.progress_total},
        "verdict": found.verdict,
        "message": found.message,
        "queue_position": queue_position,
        "waiting_s": waited_s(found),
        "tried": tried(found),
        "not_scored": not_scored(found) or None,
        "declines": declines,
        "waits_for": waiting_for([found]).get(found.pk),
        "no_host": no_host(found),
        **_going_on(found),
        "host": found.host,
        "practice": found.kernel.submission.is_practice,
        "stale": why_stale(found) or None,
        "ruling": told(found.ruled()),
        "url": found.get_absolute_url(),
    }


def _going_on(found: Run) -> dict[str, int | None]:
    """Return the seconds since a running run began, and those within which its phases end."""
    if found.status != Status.RUNNING or found.started_at is None:
        return {"elapsed_s": None, "most_s": None}
    elapsed_s = (timezone.now() - found.started_at).total_seconds()
    most_s = longest_s(found.device)
    return {"elapsed_s": max(0, round(elapsed_s)), "most_s": round(most_s)}


def phase_steps(found: Run) -> list[dict[str, object]]:
    running = [name for name, _ in PHASES]
    here = found.phase if found.phase in running else str(found.status)
    reached = SHOWN_PHASES.index(here) if here in SHOWN_PHASES else len(SHOWN_PHASES)
    return [
        {"key": key, "text": key.capitalize(), "past": step < reached, "here": step == reached}
        for step, key in enumerate(SHOWN_PHASES)
    ]


def run_table(name: str, report: Report) -> Table:
    """Return one of TABLES, or without a name every output of every rank in every trial."""
    columns, rows = TABLES.get(name, (CHECK_COLUMNS, check_rows))
    return Table(columns=columns, rows=rows(report))


def check_rows(report: Report) -> ReportRows:
    for trial in report["trials"]:
        for check in trial["checks"]:
            yield [trial["trial"], *(check.get(name) for name in CHECK_COLUMNS[1:])]


def burst_rows(report: Report) -> ReportRows:
    timing = report.get("timing")
    if timing:
        pairs = zip_longest(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
        for number, pair in enumerate(pairs, start=1):
            yield [number, *pair]


def time_rows(report: Report) -> ReportRows:
    """Yield every time of a call of both sides, and the bound; none where nothing was timed."""
    for time in call_times(report) if report.get("timing") else ():
        yield [time.key, time.kernel_us, time.baseline_us, int(time.is_scored)]


def limit_rows(report: Report) -> ReportRows:
    """Yield the least times that the hardware allows. A host without a datasheet has none."""
    floors = report.get("floors")
    if floors:
        yield from ([name, floors[f"{name}_us"]] for name in FLOOR_WORDS)


def rank_rows(report: Report) -> ReportRows:
    timing = report.get("timing") or {}
    own_us, last = timing.get("rank_us", ()), timing.get("rank_last", ())
    profiled = {timeline["rank"]: timeline for timeline in report.get("timelines", ())}
    for rank in sorted({*range(len(own_us)), *profiled}):
        timeline = profiled.get(rank, {})
        own = (told[rank] if rank < len(told) else None for told in (own_us, last))
        yield [rank, *own, *(timeline.get(name) for name in SUMS)]


def gpu_rows(report: Report) -> ReportRows:
    for number, gpu in enumerate(report.get("gpus", ())):
        yield [number, *(gpu[name] for name in GPU_STATE), " ".join(gpu["throttle_reasons"])]


def mechanism_rows(report: Report) -> ReportRows:
    for found in report.get("mechanisms", ()):
        yield [found[name] for name in MECHANISM_COLUMNS]


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Report], ReportRows]]] = {
    "bursts": (BURST_COLUMNS, burst_rows),
    "times": (TIME_COLUMNS, time_rows),
    "limits": (LIMIT_COLUMNS, limit_rows),
    "ranks": (RANK_COLUMNS, rank_rows),
    "gpus": (GPU_COLUMNS, gpu_rows),
    "mechanisms": (MECHANISM_COLUMNS, mechanism_rows),
}
