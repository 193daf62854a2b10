"""Figures: where a page puts them, and their data as JSON and CSV. A module for each page."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponseBase

from leaderboard.pages import View
from leaderboard.views.figures import (
    board,
    categories,
    hardware,
    language_models,
    overview,
    problems,
    runs,
    submissions,
)

FIGURES: Mapping[str, View] = {
    "fast-p": board.fast_p,
    "failure-modes": board.failure_modes,
    "pass-k": board.chances,
    "spreads": board.spreads,
    "utilisations": board.utilisations,
    "category-heat": categories.heat_map,
    "hardware-limits": hardware.limits,
    "roofline": overview.arithmetic,
    "roofline-links": overview.links,
    "speedups-by-problem": overview.spreads,
    "failures-by-problem": overview.failures,
    "problem-failures": problems.failures,
    "speedup-by-size": problems.by_size,
    "speedup-by-ranks": problems.by_ranks,
    "bursts": runs.bursts,
    "burst-histogram": runs.burst_histogram,
    "margins": runs.margins,
    "timeline": runs.timeline,
    "speedups": submissions.speedups,
    "submission-failures": submissions.failures,
    "progress": submissions.progress,
    "model-speedups": language_models.speedups,
    "model-failures": language_models.failures,
}


def answer(request: HttpRequest, name: str, form: str) -> HttpResponseBase:
    if name not in FIGURES:
        raise Http404
    return FIGURES[name](request, form=form)
