"""Figures of one language model: speedups by problem, and how its attempts end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import Http404, HttpRequest

from leaderboard import boards
from leaderboard.boards import Entry
from leaderboard.charts import boards as board_charts
from leaderboard.charts import submissions as charts
from leaderboard.charts.boards import ModeCounts
from leaderboard.charts.submissions import Series
from leaderboard.models import LanguageModel, Problem, Standing
from leaderboard.pages import Page, Table, public_page
from leaderboard.views.figures.board import mode_table
from leaderboard.views.figures.frame import figure, figure_page

Titles = Mapping[int, str]


def asked(request: HttpRequest) -> tuple[list[Entry], Titles]:
    """The ranked submissions of `?model=<slug>`, best first."""
    slug = request.GET.get("model", "")
    found = (
        LanguageModel.objects.visible().filter(slug=slug).first() if slug.isprintable() else None
    )
    if found is None:
        raise Http404
    problems = list(Problem.objects.values_list("number", "title", "scored"))
    judged = Standing.objects.ranked().filter(submission__model=found)
    scored = sum(is_scored for _, _, is_scored in problems)
    entries = [entry for _, entry in boards.each_in_its_setting(judged, scored)]
    return entries, {number: f"{number}. {title}" for number, title, _ in problems}


@public_page("model")
def speedups(request: HttpRequest) -> Page:
    series = series_of(*asked(request))
    return figure_page(charts.speedups_by_problem(series), series_table(series))


@public_page("model")
def failures(request: HttpRequest) -> Page:
    counts = mode_counts(asked(request)[0])
    return figure_page(board_charts.failure_modes(counts), mode_table(counts))


def model_figures(
    found: LanguageModel, entries: Sequence[Entry], titles: Titles
) -> list[dict[str, object]]:
    made = []
    if counts := mode_counts(entries):
        title, says = "How attempts end", "Share of attempts by outcome, by submission."
        table = mode_table(counts)
        made.append(figure(f"model-failures?model={found.slug}", title, says, table=table))
    if series := series_of(entries, titles):
        title, says = "Speedup on every problem solved", "The best kernel of each submission."
        table, address = series_table(series), f"model-speedups?model={found.slug}"
        made.append(figure(address, title, says, table=table, tall=True))
    return made


def named(entry: Entry) -> str:
    return f"{entry.harness}, no. {entry.submission}"


def mode_counts(entries: Sequence[Entry]) -> list[ModeCounts]:
    return [ModeCounts(name=named(entry), counts=entry.modes) for entry in entries if entry.modes]


def series_of(entries: Sequence[Entry], titles: Titles) -> list[Series]:
    found = []
    for entry in entries:
        points = [
            (titles[cell.problem], cell.best_speedup)
            for cell in entry.cells
            if cell.best_speedup is not None
        ]
        if points:
            found.append(Series(name=named(entry), points=tuple(points)))
    return found


def series_table(series: Sequence[Series]) -> Table:
    """A row for each problem, a column for each submission."""
    by_name = [dict(one.points) for one in series]
    names = dict.fromkeys(name for one in series for name, _ in one.points)
    columns = ("Problem, ×", *(one.name for one in series))
    return Table(columns=columns, rows=[[n, *(of.get(n) for of in by_name)] for n in names])
