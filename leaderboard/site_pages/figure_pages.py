"""Lists all figures, and serves for each a page with its data."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponseBase

from leaderboard.board_pages import (
    board_figures,
    catalogue_figures,
    category_figures,
    cost_figures,
    profiles,
)
from leaderboard.figures.frame import Figure
from leaderboard.model_pages import model_figures, submission_figures
from leaderboard.problem_pages import claimed_curves, overview_figures, problem_figures, records
from leaderboard.run_pages import run_figures
from leaderboard.site_pages import hardware_figures

FIGURES: Mapping[str, Figure] = {
    one.name: one
    for one in (
        board_figures.fast_p,
        board_figures.chances,
        board_figures.spreads,
        board_figures.utilisations,
        board_figures.failure_modes,
        cost_figures.cost_fast,
        cost_figures.tokens_solved,
        category_figures.heat_map,
        catalogue_figures.problem_map,
        catalogue_figures.sources,
        profiles.both_profiles,
        hardware_figures.limits,
        overview_figures.links,
        overview_figures.arithmetic,
        overview_figures.spreads,
        overview_figures.failures,
        problem_figures.failures,
        claimed_curves.published_speedups,
        records.best_over_time,
        problem_figures.by_size,
        problem_figures.by_ranks,
        run_figures.bursts,
        run_figures.last_rank,
        run_figures.burst_histogram,
        run_figures.margins,
        run_figures.timeline,
        submission_figures.progress,
        submission_figures.by_step,
        submission_figures.failures,
        submission_figures.speedups,
        model_figures.by_category,
        model_figures.fast_p,
        model_figures.failures,
        model_figures.speedups,
    )
}


def answer(request: HttpRequest, name: str, form: str = "html") -> HttpResponseBase:
    if name not in FIGURES:
        raise Http404
    return FIGURES[name].view(request, form=form)
