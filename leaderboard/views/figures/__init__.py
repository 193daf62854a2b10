"""Figures: which a page has, and a page with its data for each. A module for each kind of page."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponseBase

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
from leaderboard.views.figures.frame import Figure

FIGURES: Mapping[str, Figure] = {
    one.name: one
    for one in (
        board.fast_p,
        board.chances,
        board.spreads,
        board.utilisations,
        board.failure_modes,
        categories.heat_map,
        hardware.limits,
        overview.links,
        overview.arithmetic,
        overview.spreads,
        overview.failures,
        problems.failures,
        problems.by_size,
        problems.by_ranks,
        runs.bursts,
        runs.burst_histogram,
        runs.margins,
        runs.timeline,
        submissions.progress,
        submissions.failures,
        submissions.speedups,
        language_models.failures,
        language_models.speedups,
    )
}


def answer(request: HttpRequest, name: str, form: str = "html") -> HttpResponseBase:
    if name not in FIGURES:
        raise Http404
    return FIGURES[name].view(request, form=form)
