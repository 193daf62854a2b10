"""The page of a submission and that of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Count, Subquery
from django.http import Http404, HttpRequest
from django.urls import reverse

from leaderboard import boards, cells, scores
from leaderboard.boards import Entry, Setting
from leaderboard.columns import COLUMNS, CSV_COLUMNS, as_record, csv_rows, placed
from leaderboard.filters import scope
from leaderboard.models import (
    Kernel,
    LanguageModel,
    Problem,
    PublishedResult,
    Run,
    Standing,
    Submission,
    Visibility,
)
from leaderboard.pages import Crumb, Page, Table, public_page
from leaderboard.scores import Score
from leaderboard.verdicts import state, words
from leaderboard.views.board import row_context
from leaderboard.views.figures.frame import figure
from leaderboard.views.problems import address_of

KERNEL_COLUMNS = (
    *("number", "problem", "attempt", "backend", "verdict"),
    *("speedup", "speedup_low", "speedup_high", "kernel", "run"),
)


@public_page()
def submission(request: HttpRequest, number: int) -> Page:
    counted = Problem.objects.scored().order_by().values("scored").annotate(n=Count("pk"))
    known = Submission.objects.select_related("model")
    found = known.annotate(scored=Subquery(counted.values("n"))).filter(pk=number).first()
    if found is None:
        raise Http404
    setting, score = score_of(found, getattr(found, "scored", None) or 0)
    records = [kernel_record(kernel, run) for kernel, run in kernels_of(found)]
    rows = [{key: record[key] for key in KERNEL_COLUMNS} for record in records]
    return Page(
        template="submission.html",
        section="",
        context={
            **submission_context(found, setting, score),
            "kernels": [_drawn(record) for record in records],
        },
        data={
            "submission": found.pk,
            "model": found.model.name,
            "harness": found.harness,
            "setting": setting and vars(setting),
            "score": asdict(score),
            "kernels": rows,
        },
        table=Table(columns=KERNEL_COLUMNS, rows=[list(row.values()) for row in rows]),
        private=found.visibility == Visibility.PRIVATE,
        owner_id=found.owner_id,
        crumbs=(
            Crumb(text="Leaderboard", url=reverse("board")),
            Crumb(text=found.model.name, url=reverse("model", args=[found.model.slug])),
            Crumb(text=f"Submission {found.pk}"),
        ),
    )


def submission_context(
    found: Submission, setting: Setting | None, score: Score
) -> dict[str, object]:
    return {
        "submission": found,
        "model": found.model,
        "harness": found.harness,
        "trust": words(found.trust),
        "moderation": found.moderation.capitalize(),
        "reason": found.moderation_reason,
        "private": found.visibility != Visibility.PUBLIC,
        "score": score,
        "interval": score.pass_at_1_interval if setting else None,
        "setting": setting,
        "notes": found.notes,
        "figures": _figures(found, score),
    }


def score_of(found: Submission, scored: int) -> tuple[Setting | None, Score]:
    """Also of a submission that boards leave out."""
    own = Standing.objects.filter(submission=found)
    for setting, entry in boards.each_in_its_setting(own, scored):
        return setting, entry.score
    return None, scores.score([], scored, k=found.k)


def kernels_of(found: Submission) -> list[tuple[Kernel, Run | None]]:
    """Every kernel with its newest run."""
    kernels = Kernel.objects.filter(submission=found).select_related("problem")
    runs = Run.objects.filter(kernel__submission=found).defer("report_packed")
    newest: dict[int, Run] = {}
    for run in runs.order_by("-created_at", "-id"):
        newest.setdefault(run.kernel_id, run)
    return [(kernel, newest.get(kernel.pk)) for kernel in kernels]


def kernel_record(kernel: Kernel, run: Run | None) -> dict[str, Any]:
    return {
        "number": kernel.problem_id,
        "problem": kernel.problem.title,
        "problem_url": address_of(kernel.problem),
        "attempt": kernel.attempt,
        "backend": kernel.backend,
        "verdict": (run.verdict or run.status) if run else None,
        "state": state(run.verdict if run else None),
        "speedup": run.speedup if run else None,
        "speedup_low": run.speedup_low if run else None,
        "speedup_high": run.speedup_high if run else None,
        "kernel": kernel.source_id,
        "url": reverse("kernel", args=[kernel.source_id]),
        "run": str(run.id) if run else None,
        "run_url": run.get_absolute_url() if run else None,
    }


def _drawn(record: dict[str, Any]) -> dict[str, Any]:
    numbers = ("speedup", "speedup_low", "speedup_high")
    return {
        **record,
        "verdict": words(record["verdict"] or ""),
        "digest": record["kernel"],
        "attempt": cells.count_cell(record["attempt"]),
        "cells": cells.joined(cells.decimal_cell(record[name], 2) for name in numbers),
    }


def _figures(found: Submission, score: Score) -> list[dict[str, object]]:
    if not score.correct:
        return []
    title, says = "Speedup of every correct kernel", "Bars are 95 % intervals; the table is below."
    return [figure(f"speedups?submission={found.pk}", title, says, tall=True)]


@public_page()
def model(request: HttpRequest, slug: str) -> Page:
    found = LanguageModel.objects.visible().filter(slug=slug).first()
    if found is None:
        raise Http404
    problems = scope(request)
    judged = Standing.objects.ranked().filter(submission__model=found)
    entries = [entry for _, entry in boards.each_in_its_setting(judged, problems.scored)]
    claims = PublishedResult.objects.filter(model=found).select_related("model", "publication")
    totals = [boards.claim(result) for result in claims if result.category is None]
    rows = placed([*entries, *totals], "fast1")
    context = {
        "model": found,
        "columns": COLUMNS,
        "rows": [row_context(row) for row in rows],
        "claimed": bool(totals),
        "citation": claims[0].publication.citation if totals else "",
        **category_context(entries, list(claims), problems.titles, problems.sizes),
    }
    return Page(
        template="model.html",
        section="",
        context=context,
        data={"model": found.name, "vendor": found.vendor, "rows": [as_record(r) for r in rows]},
        table=Table(columns=CSV_COLUMNS, rows=csv_rows(rows)),
        crumbs=(Crumb(text="Leaderboard", url=reverse("board")), Crumb(text=found.name)),
    )


def category_context(
    entries: Sequence[Entry],
    claims: Sequence[PublishedResult],
    titles: dict[str, str],
    sizes: dict[str, int],
) -> dict[str, object]:
    """pass@1 by category: a column for each submission and each published claim."""
    claimed: dict[str, dict[str, PublishedResult]] = {}
    for result in claims:
        if result.category is not None:
            claimed.setdefault(result.harness, {})[result.category] = result
    columns = [f"{entry.harness}, no. {entry.submission}" for entry in entries]
    columns += [f"{harness}, published" for harness in claimed]
    groups = [scores.by_category(entry.results) for entry in entries]
    rows = []
    for slug, title in titles.items():
        ours = [scores.share_passing(group.get(slug, []), sizes[slug], 1) for group in groups]
        theirs = [
            boards.claim(results[slug]).score.pass_at_1 if slug in results else None
            for results in claimed.values()
        ]
        made = [cells.count_cell(sizes[slug]), *map(cells.heat_cell, [*ours, *theirs])]
        rows.append({"title": title, "cells": cells.joined(made)})
    return {"category_columns": columns, "categories": rows if columns else []}
