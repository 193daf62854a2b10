"""The list of problems and the page of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db.models import Count, Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from leaderboard import boards, cells, scores
from leaderboard.filters import SETTING_FILTERS, said, setting_filters
from leaderboard.models import Kernel, Problem, Run, Submission, Summary
from leaderboard.pages import Crumb, Page, Table, public_page
from leaderboard.problem_facts import problem_context
from leaderboard.verdicts import state, words

LIST_SIZE, LIST_RANKS = "standard", "4"
MOST_KERNELS = 500
KERNEL_NUMBERS = ("speedup", "speedup_low", "speedup_high", "kernel_us", "baseline_us")


def address_of(problem: Problem) -> str:
    return reverse("problem", args=[problem.number, problem.slug])


@public_page()
def problems(request: HttpRequest) -> Page:
    found = list(Problem.objects.all())
    results = {
        row["problem"]: row
        for row in Summary.objects.ranked()
        .filter(correct__gte=1)
        .order_by()
        .values("problem")
        .annotate(solved=Count("submission", distinct=True), best=Max("best_speedup"))
    }
    records = [_list_record(problem, results.get(problem.number, {})) for problem in found]
    groups: dict[str, list[dict[str, object]]] = {}
    for problem, record in zip(found, records, strict=True):
        groups.setdefault(problem.category_title, []).append(_list_row(problem, record))
    scored = sum(problem.scored for problem in found)
    context = {
        "scored": scored,
        "unscored": len(found) - scored,
        "groups": [{"title": title, "problems": rows} for title, rows in groups.items()],
    }
    return Page(
        template="problems.html",
        section="problems",
        context=context,
        data={"problems": records},
        table=Table(
            columns=tuple(records[0]) if records else (),
            rows=[list(record.values()) for record in records],
        ),
        crumbs=(Crumb(text="Leaderboard", url=reverse("board")), Crumb(text="Problems")),
    )


def _list_record(problem: Problem, result: Mapping[str, Any]) -> dict[str, Any]:
    cost = problem.payload.get("costs", {}).get(LIST_SIZE, {}).get(LIST_RANKS, {})
    return {
        "number": problem.number,
        "slug": problem.slug,
        "title": problem.title,
        "category": problem.category_title,
        "source": problem.payload.get("source", ""),
        "scored": problem.scored,
        "wire_bytes": cost.get("wire_bytes"),
        "solved": result.get("solved", 0),
        "best_speedup": result.get("best"),
    }


def _list_row(problem: Problem, record: Mapping[str, Any]) -> dict[str, object]:
    made = [
        cells.bytes_cell(record["wire_bytes"]),
        cells.count_cell(record["solved"]),
        cells.ratio_cell(record["best_speedup"]),
    ]
    shown: dict[str, object] = {
        "summary": problem.summary,
        "url": address_of(problem),
        "cells": cells.joined(made),
    }
    return {**record, **shown}


def problem_by_number(request: HttpRequest, number: int) -> HttpResponse:
    found = Problem.objects.filter(number=number).first()
    if found is None:
        raise Http404
    return redirect(address_of(found), permanent=False)


@public_page(*SETTING_FILTERS)
def problem(request: HttpRequest, number: int, slug: str) -> Page:
    found = Problem.objects.filter(number=number, slug=slug).first()
    if found is None:
        raise Http404
    setting, controls = setting_filters(request, boards.known_settings())
    runs = newest_runs(found, setting) if setting else []
    ordered = scores.in_order(runs, lambda run: run.speedup)
    places = scores.places([run.speedup for run in ordered])
    records = [kernel_record(run) for run in ordered]
    rows = zip(ordered, places, strict=True)
    context = {
        "filters": controls,
        "page_url": address_of(found),
        "kernels": [_kernel_row(run, place) for run, place in rows],
        "said": f"{said(len(runs), 'kernel')} · {setting}" if setting else said(0, "kernel"),
        **problem_context(found),
    }
    return Page(
        template="problem.html",
        section="problems",
        context=context,
        data={"problem": found.payload | {"number": number}, "kernels": records},
        table=Table(
            columns=tuple(records[0]) if records else (),
            rows=[list(record.values()) for record in records],
        ),
        crumbs=(
            Crumb(text="Leaderboard", url=reverse("board")),
            Crumb(text="Problems", url=reverse("problems")),
            Crumb(text=found.title),
        ),
    )


def newest_runs(found: Problem, setting: boards.Setting) -> list[Run]:
    """The newest counted run of every ranked kernel, in one setting."""
    kernels = Kernel.objects.filter(problem=found, submission__in=Submission.objects.ranked())
    runs = Run.objects.counted().filter(kernel__in=kernels, **asdict(setting)).with_names()
    newest: dict[int, Run] = {}
    for run in runs.order_by("-created_at", "-id")[:MOST_KERNELS]:
        newest.setdefault(run.kernel_id, run)
    return list(newest.values())


def kernel_record(run: Run) -> dict[str, Any]:
    submission = run.kernel.submission
    return {
        "model": submission.model.name,
        "harness": submission.harness,
        "submission": submission.pk,
        "attempt": run.kernel.attempt,
        "backend": run.kernel.backend,
        "verdict": run.verdict,
        **{name: getattr(run, name) for name in KERNEL_NUMBERS},
        "kernel": run.kernel.source_id,
        "run": str(run.id),
    }


def _kernel_row(run: Run, place: str | None) -> dict[str, object]:
    kernel = run.kernel
    numbers = [cells.decimal_cell(getattr(run, name), 2) for name in KERNEL_NUMBERS]
    return {
        "place": place or "",
        "model": kernel.submission.model.name,
        "submission_url": kernel.submission.get_absolute_url(),
        "harness": kernel.submission.harness,
        "backend": kernel.backend,
        "verdict": words(run.verdict or ""),
        "state": state(run.verdict),
        "run_url": run.get_absolute_url(),
        "url": reverse("kernel", args=[kernel.source_id]),
        "digest": kernel.source_id,
        "cells": cells.joined(numbers),
    }
