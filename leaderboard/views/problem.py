"""The page of one problem: what stands in the way first, then the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q, Subquery
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from leaderboard import boards, cells, floors, problem_results, scores
from leaderboard.filters import SETTING_FILTERS, said, setting_filters
from leaderboard.floors import LIMITER_WORDS, Limits
from leaderboard.models import Problem, Summary
from leaderboard.pages import Crumb, Page, Table, canonical_query, choice, public_page
from leaderboard.problem_facts import (
    Times,
    floor_records,
    floor_rows,
    gpu_of,
    problem_context,
)
from leaderboard.problem_results import Results, attempt_records, kernel_record
from leaderboard.verdicts import state, words
from leaderboard.views.figures.problems import problem_figures
from leaderboard.views.problems import address_of

KERNELS_SHOWN, ATTEMPTS_SHOWN = 25, 25


@public_page("attempts", "gpu", *SETTING_FILTERS)
def problem(request: HttpRequest, number: int, slug: str) -> Page:
    near = with_neighbours(number)
    found = next((one for one in near if (one.number, one.slug) == (number, slug)), None)
    if found is None:
        raise Http404
    every = choice(request, "attempts", ["all"]) == "all"
    rows = problem_results.summaries_of(found)
    settings = problem_results.in_view(boards.known_settings(), rows)
    setting, controls = setting_filters(request, settings)
    results = problem_results.results(rows, setting)
    limits = limits_for(request, found, results)
    kernels = [kernel_record(row) for row in results.solved]
    attempts = attempt_records(results.rows)
    query = canonical_query(request, [*SETTING_FILTERS])
    context = {
        "filters": controls,
        "page_url": address_of(found),
        "every_url": f"?{query}&attempts=all" if query else "?attempts=all",
        **results_context(results, attempts, every=every),
        "figures": problem_figures(found, results, query),
        **floor_context(found, limits, rows, query),
        **neighbours(found, near),
        **problem_context(found),
    }
    return Page(
        template="problem.html",
        section="problems",
        context=context,
        data={
            "problem": found.payload | {"number": number},
            "setting": setting and vars(setting),
            "kernels": kernels,
            "attempts": attempts,
            "floors": {"gpu": limits.gpu, "rows": floor_records(found.payload, limits)},
        },
        table=table_of(attempts if every else kernels),
        crumbs=(*crumbs(), Crumb(text=found.title)),
    )


def crumbs() -> tuple[Crumb, ...]:
    """Down to the list of problems."""
    board = Crumb(text="Leaderboard", url=reverse("board"))
    return board, Crumb(text="Problems", url=reverse("problems"))


def table_of(records: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        columns=tuple(records[0]) if records else (),
        rows=[[flat(value) for value in record.values()] for record in records],
    )


def flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def limits_for(request: HttpRequest, found: Problem, results: Results) -> Limits:
    """The GPU asked for, else that of the setting, else that of the baseline, else the first."""
    known = {limits.slug: limits for limits in floors.datasheets().values()}
    if wanted := choice(request, "gpu", list(known)):
        return known[wanted]
    names = [row.hardware.title for row in results.rows[:1]]
    names += [gpu_of(baseline) for baseline in found.payload["baselines"]]
    of_names = (floors.limits_of(name) for name in names)
    return next((limits for limits in of_names if limits), next(iter(known.values())))


def results_context(
    results: Results, attempts: Sequence[Mapping[str, Any]], *, every: bool
) -> dict[str, object]:
    kernels, setting = said(len(results.solved), "kernel"), results.setting
    return {
        "said": f"{kernels} · {setting}" if setting else "",
        **standing(results),
        **kernel_rows(results, None if every else KERNELS_SHOWN),
        **attempt_rows(attempts, None if every else ATTEMPTS_SHOWN),
    }


def standing(results: Results) -> dict[str, object]:
    """The facts at the head of the page: how far anybody came, and what stops the rest."""
    best = results.solved[0] if results.solved else None
    failure = results.commonest_failure
    failed = results.made - results.correct
    shown = best or next((row for row in results.references if row.best_run), None)
    run = shown and shown.best_run
    return {
        "best": best and best.best_run,
        "told": run,
        "limiter": run and LIMITER_WORDS.get(run.limiter or ""),
        "solvers": len(results.solved),
        "submissions": len(results.rows),
        "correct": results.correct,
        "made": results.made,
        "faster": results.faster,
        "failure": failure and failure[0],
        "failure_share": failure and failed and failure[1] / failed,
    }


def kernel_rows(results: Results, most: int | None) -> dict[str, object]:
    """Placed by speedup; the reference itself stands above, without a place."""
    solved = results.solved
    places = scores.places([row.best_speedup for row in solved])
    shown = list(zip(solved, places, strict=True))[:most]
    references = [(row, None) for row in results.references if row.best_run is not None]
    return {
        "kernels": [_kernel_row(row, place) for row, place in (*references, *shown)],
        "more_kernels": len(solved) - len(shown),
    }


def _kernel_row(row: Summary, place: str | None) -> dict[str, object]:
    record = kernel_record(row)
    numbers = [
        cells.interval_cell(record["speedup"], record["speedup_low"], record["speedup_high"]),
        cells.time_cell(record["kernel_us"]),
        cells.share_cell(record["utilisation"]),
    ]
    return {
        **_linked(record),
        "place": place or "",
        "is_reference": row.submission.model.is_baseline,
        "cells": cells.joined(numbers),
        "submission_url": row.submission.get_absolute_url(),
    }


def attempt_rows(records: Sequence[Mapping[str, Any]], most: int | None) -> dict[str, object]:
    shown = [
        {
            **_linked(record),
            "submission_url": reverse("submission", args=[record["submission"]]),
            "number": cells.count_cell(record["attempt"]),
            "cells": _attempt_cells(record),
        }
        for record in records[:most]
    ]
    return {"attempts": shown, "more_attempts": len(records) - len(shown)}


def _attempt_cells(record: Mapping[str, Any]) -> SafeString:
    made = (cells.ratio_cell(record["speedup"]), cells.share_cell(record["utilisation"]))
    return cells.joined(made)


def _linked(record: Mapping[str, Any]) -> dict[str, object]:
    return {
        **{name: record[name] for name in ("model", "harness", "backend", "attempt")},
        "mechanisms": [words(tag) for tag in record["mechanisms"]],
        "verdict": words(record["verdict"]),
        "state": state(record["verdict"]),
        "run_url": reverse("run", args=[record["run"]]),
        "kernel_url": reverse("kernel", args=[record["kernel"]]),
        "digest": record["kernel"],
    }


def floor_context(
    found: Problem, limits: Limits, rows: Sequence[Summary], query: str
) -> dict[str, object]:
    tail = f"&{query}" if query else ""
    gpus = [
        {"url": f"?gpu={known.slug}{tail}", "gpu": known.gpu, "current": known is limits}
        for known in floors.datasheets().values()
    ]
    return {
        "gpus": gpus,
        "limits": limits,
        "floors": floor_rows(found.payload, limits, *measured(rows, limits)),
    }


def measured(rows: Sequence[Summary], limits: Limits) -> tuple[Times, Times]:
    """Microseconds of the reference and of the fastest correct kernel of a model on this GPU in
    bfloat16, by size and ranks. The reference's are those measured beside that kernel."""
    here = [
        (row.submission.model.is_baseline, row.best_run.kernel_us, row, row.best_run)
        for row in rows
        if row.best_run is not None
        and row.best_run.kernel_us is not None
        and row.dtype == floors.DTYPE
        and floors.limits_of(row.hardware.title) is limits
    ]
    references: dict[tuple[str, int], float] = {}
    kernels: dict[tuple[str, int], float] = {}
    for is_reference, kernel_us, row, run in sorted(here, key=lambda found: found[:2]):
        place = (row.size, row.world_size)
        if run.baseline_us is not None:
            references.setdefault(place, run.baseline_us)
        if not is_reference:
            kernels.setdefault(place, kernel_us)
    return references, kernels


def with_neighbours(number: int) -> list[Problem]:
    """A problem between those before and after it; one query."""
    others = Problem.objects.values("number")
    before = Subquery(others.filter(number__lt=number).order_by("-number")[:1])
    after = Subquery(others.filter(number__gt=number).order_by("number")[:1])
    near = Q(number=number) | Q(number=before) | Q(number=after)
    return list(Problem.objects.filter(near).order_by("number"))


def neighbours(found: Problem, near: Sequence[Problem]) -> dict[str, object]:
    links = {one.number > found.number: _neighbour(one) for one in near if one != found}
    return {"before": links.get(False), "after": links.get(True)}


def _neighbour(found: Problem) -> dict[str, object]:
    return {"number": found.number, "title": found.title, "url": address_of(found)}
