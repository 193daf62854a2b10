"""The page of a kernel's source; its address is the SHA-256 of the text."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse

from leaderboard import cells
from leaderboard.display import highlighted
from leaderboard.evidence import evidence
from leaderboard.models import Kernel, Run, Source, Submission, Visibility
from leaderboard.pages import Crumb, Page, Table, public_page
from leaderboard.verdicts import state, words
from leaderboard.views.problems import address_of

MOST_RUNS = 200


@public_page()
def kernel(request: HttpRequest, digest: str) -> Page:
    uses, private = uses_of(request, digest)
    source = Source.objects.get(pk=digest).text
    runs = list(Run.objects.filter(kernel__in=uses).with_names()[:MOST_RUNS])
    newest = next((run for run in runs if run.verdict), None)
    report = Run.objects.get(pk=newest.pk).report if newest else None
    records = [run_line(run) for run in runs]
    problem = uses[0].problem
    context = {
        **(evidence(newest, report) if newest else {"run": None}),
        "digest": digest,
        "uses": [_use(use) for use in uses],
        "runs": [
            {**line, "cells": cells.decimal_cell(run.speedup, 2)}
            for line, run in zip(records, runs, strict=True)
        ],
        "source": highlighted(source),
        "lines": source.count("\n") + (not source.endswith("\n")),
    }
    return Page(
        template="kernel.html",
        section="",
        context=context,
        data={
            "digest": digest,
            "uses": [_record(use) for use in uses],
            "source": source,
            "runs": records,
        },
        table=Table(columns=RUN_COLUMNS, rows=[[line[c] for c in RUN_COLUMNS] for line in records]),
        private=private,
        owner_id=uses[0].submission.owner_id,
        crumbs=(
            Crumb(text="Leaderboard", url=reverse("board")),
            Crumb(text=problem.title, url=address_of(problem)),
            Crumb(text=f"Kernel {digest[:10]}"),
        ),
    )


RUN_COLUMNS = ("id", "problem", "status", "verdict", "speedup", "where", "profile", "finished")


def uses_of(request: HttpRequest, digest: str) -> tuple[list[Kernel], bool]:
    """Where a source was handed in, as far as this reader may know, and whether that is private.

    An unlisted submission is not given away by a public one with the same source.
    """
    found = Kernel.objects.filter(source=digest).select_related("problem", "submission__model")
    uses = list(found.order_by("submission_id", "attempt"))
    for visibility in (Visibility.PUBLIC, Visibility.UNLISTED):
        if open_to_all := [use for use in uses if use.submission.visibility == visibility]:
            return open_to_all, False
    own = Submission.objects.reachable_by(request.user).filter(kernels__source=digest)
    seen = set(own.values_list("pk", flat=True)) if uses else set()
    if not seen:
        raise Http404
    return [use for use in uses if use.submission_id in seen], True


def run_line(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "url": run.get_absolute_url(),
        "problem": str(run.kernel.problem),
        "model": run.kernel.submission.model.name,
        "asked": run.created_at,
        "status": run.status,
        "verdict": words(run.verdict) if run.verdict else "",
        "state": state(run.verdict),
        "speedup": run.speedup,
        "where": f"{run.hardware_id}, {run.world_size} ranks, {run.size}, {run.dtype}",
        "profile": run.profile,
        "finished": run.finished_at,
    }


def _use(use: Kernel) -> dict[str, object]:
    return {
        **_record(use),
        "problem_url": address_of(use.problem),
        "submission_url": use.submission.get_absolute_url(),
    }


def _record(use: Kernel) -> dict[str, object]:
    return {
        "problem": str(use.problem),
        "model": use.submission.model.name,
        "harness": use.submission.harness,
        "submission": use.submission_id,
        "attempt": use.attempt,
        "step": use.step,
        "backend": use.backend,
    }
