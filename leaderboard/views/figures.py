"""Figures: where a page puts them, and their data as JSON."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.safestring import SafeString

from leaderboard import cells, charts, scores
from leaderboard.boards import Entry
from leaderboard.charts import Curve, Margin, ModeCounts, Spec, Speedup
from leaderboard.filters import BOARD_PARAMETERS, board_query
from leaderboard.models import PublishedResult, Run, Submission
from leaderboard.pages import Page, View, public_page
from leaderboard.scores import FAILURE_MODES

CURVE_POINTS = tuple(step / 10 for step in range(31))
TABLE_POINTS = (0.0, 0.5, 1.0, 2.0, 3.0)
MOST_CURVES = 5
TIMES = ("speedup", "speedup_low", "speedup_high")


def figure(
    address: str,
    title: str,
    says: str,
    *,
    columns: Sequence[str] = (),
    rows: Sequence[tuple[str, SafeString]] = (),
    tall: bool = False,
) -> dict[str, object]:
    """The frame in a page. `address` is a name with its query string, `rows` the table twin."""
    name, _, query = address.partition("?")
    return {
        "name": name,
        "url": reverse("figure", args=[name]) + (f"?{query}" if query else ""),
        "title": title,
        "says": says,
        "columns": columns,
        "rows": [{"name": row, "cells": made} for row, made in rows],
        "tall": tall,
    }


@public_page(*BOARD_PARAMETERS)
def fast_p(request: HttpRequest) -> Page:
    query = board_query(request)
    curves = fast_p_curves(query.judged(), query.claims(), query.scope.scored)
    return _page(charts.fast_p_curves(curves))


@public_page(*BOARD_PARAMETERS)
def failure_modes(request: HttpRequest) -> Page:
    query = board_query(request)
    return _page(charts.failure_modes(mode_counts(query.judged(), query.claims())))


@public_page("run")
def bursts(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    timing = report.get("timing")
    if timing is None:
        raise Http404
    spec = charts.burst_samples(timing["kernel_bursts_us"], timing["baseline_bursts_us"])
    return _page(spec, run.kernel.submission)


@public_page("run")
def margins(request: HttpRequest) -> Page:
    run, report = _run_of(request)
    found = [
        Margin(trial=trial, rank=rank, max_error=error)
        for (trial, rank), (error, _) in worst_errors(report["trials"]).items()
        if error is not None
    ]
    return _page(charts.error_margins(found), run.kernel.submission)


@public_page("submission")
def speedups(request: HttpRequest) -> Page:
    number = request.GET.get("submission", "")
    if not (number.isascii() and number.isdigit() and len(number) < 15):
        raise Http404
    submission = Submission.objects.filter(pk=int(number)).first()
    if submission is None:
        raise Http404
    return _page(charts.speedups(speedups_of(submission)), submission)


FIGURES: Mapping[str, View] = {
    "fast-p": fast_p,
    "failure-modes": failure_modes,
    "bursts": bursts,
    "margins": margins,
    "speedups": speedups,
}


def answer(request: HttpRequest, name: str) -> HttpResponseBase:
    if name not in FIGURES:
        raise Http404
    return FIGURES[name](request, form="json")


def fast_p_curves(
    entries: Sequence[Entry], claims: Sequence[PublishedResult], scored: int
) -> list[Curve]:
    """The best entries, then the published curves (of all problems, so not for one category)."""
    best = scores.in_order(entries, lambda entry: entry.score.fast_at_1)[:MOST_CURVES]
    ours = [
        Curve(
            model=entry.model,
            name=f"{entry.model} ({entry.harness})",
            thresholds=CURVE_POINTS,
            shares=tuple(scores.fast_curve(entry.results, scored, CURVE_POINTS)),
        )
        for entry in best
    ]
    return ours + _published_curves(claims)


def _published_curves(claims: Sequence[PublishedResult]) -> list[Curve]:
    if not claims or claims[0].category is not None:
        return []
    curves = claims[0].publication.payload.get("fast_p_curve_read_off_plot", {})
    names = {claim.model.name for claim in claims}
    return [
        Curve(
            model=name,
            name=name,
            thresholds=tuple(curves["p"]),
            shares=tuple(shares),
            published=True,
        )
        for name, shares in curves.items()
        if name in names
    ]


def mode_counts(entries: Sequence[Entry], claims: Sequence[PublishedResult]) -> list[ModeCounts]:
    ours = [
        ModeCounts(name=f"{entry.model} ({entry.harness})", counts=entry.modes)
        for entry in entries
        if entry.modes
    ]
    if not claims or claims[0].category is not None:
        return ours
    payload = claims[0].publication.payload.get("failure_modes_zero_shot", {})
    names = {claim.model.name for claim in claims}
    return ours + [
        ModeCounts(
            name=f"{name} (published)", counts=dict(zip(payload["order"], counts, strict=True))
        )
        for name, counts in payload.items()
        if name in names
    ]


def curve_rows(curves: Sequence[Curve]) -> list[tuple[str, SafeString]]:
    """The table twin: shares at the points that published curves have too."""
    rows = []
    for curve in curves:
        at = dict(zip(curve.thresholds, curve.shares, strict=True))
        suffix = " (published)" if curve.published else ""
        made = cells.joined(cells.heat_cell(at.get(point)) for point in TABLE_POINTS)
        rows.append((curve.name + suffix, made))
    return rows


def mode_rows(counts: Sequence[ModeCounts]) -> list[tuple[str, SafeString]]:
    return [
        (row.name, cells.joined(cells.count_cell(row.counts.get(m, 0)) for m in FAILURE_MODES))
        for row in counts
    ]


def worst_errors(
    trials: Sequence[Mapping[str, Any]],
) -> dict[tuple[int, int], tuple[float | None, bool]]:
    """(trial, rank) -> its largest error in units of the tolerance, and whether all passed."""
    found: dict[tuple[int, int], tuple[float | None, bool]] = {}
    for trial in trials:
        for check in trial["checks"]:
            key = (trial["trial"], check["rank"])
            error, passed = found.get(key, (None, True))
            errors = [e for e in (error, check["max_error"]) if e is not None]
            found[key] = (max(errors, default=None), passed and check["verdict"] == "ok")
    return found


def speedups_of(submission: Submission) -> list[Speedup]:
    """Every correct kernel whose run counts, newest run of each."""
    runs = (
        Run.objects.counted()
        .filter(kernel__submission=submission, verdict="ok")
        .order_by("created_at", "id")
        .values_list(
            "kernel_id", "kernel__problem__title", "speedup", "speedup_low", "speedup_high"
        )
    )
    newest = {
        kernel: Speedup(name=title, speedup=speedup, low=low, high=high)
        for kernel, title, speedup, low, high in runs
        if speedup is not None and low is not None and high is not None
    }
    return list(newest.values())


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


def _page(spec: Spec, submission: Submission | None = None) -> Page:
    private = submission is not None and submission.visibility == "private"
    return Page(
        template="",
        section="",
        context={},
        data=spec,
        private=private,
        owner_id=submission.owner_id if submission else None,
    )
