"""Figures: where a page puts them, and their data as JSON and CSV. A module for each page."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponseBase

from leaderboard.pages import View
from leaderboard.views.figures import board, runs, submissions

FIGURES: Mapping[str, View] = {
    "fast-p": board.fast_p,
    "failure-modes": board.failure_modes,
    "bursts": runs.bursts,
    "margins": runs.margins,
    "speedups": submissions.speedups,
}


def answer(request: HttpRequest, name: str, form: str) -> HttpResponseBase:
    if name not in FIGURES:
        raise Http404
    return FIGURES[name](request, form=form)
