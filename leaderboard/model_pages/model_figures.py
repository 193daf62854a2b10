"""Draws the figures of one language model: speedups by problem, and how its attempts end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import Http404, HttpRequest

from leaderboard.charts import boards as board_charts
from leaderboard.charts import submissions as charts
from leaderboard.charts.boards import ModeCounts
from leaderboard.charts.drawing import Spec
from leaderboard.charts.submissions import Series
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.figures.frame import Drawn, figure, framed
from leaderboard.figures.tables import mode_table
from leaderboard.kit.links import url
from leaderboard.models import LanguageModel, LeaderboardRow, Problem
from leaderboard.read_model import boards
from leaderboard.read_model.boards import Entry

Titles = Mapping[int, str]
EACH = ", each in one setting, as the table of the model says."


def asked(request: HttpRequest) -> tuple[LanguageModel, list[Entry], Titles]:
    """Return the model of `?model=<slug>` with its ranked submissions, best first, and the titles
    of problems. Raises Http404 for an unknown model."""
    slug = request.GET.get("model", "")
    found = LanguageModel.objects.visible().called(slug) if slug.isprintable() else None
    if found is None:
        raise Http404
    problems = list(Problem.objects.values_list("number", "title", "scored", "ranked_from"))
    judged = LeaderboardRow.objects.ranked().filter(submission__model=found)
    ranked_from = [least for _, _, is_scored, least in problems if is_scored]
    entries = [one.entry for one in boards.each_in_its_setting(judged, ranked_from)]
    return found, entries, {number: f"{number}. {title}" for number, title, *_ in problems}


@figure(
    "model-failures",
    "How attempts end",
    f"Share of attempts by outcome, by submission{EACH}",
    "model",
)
def failures(request: HttpRequest) -> Drawn:
    found, entries, _ = asked(request)
    counts = mode_counts(entries)
    return _drawn(found, board_charts.failure_modes(counts), mode_table(counts))


@figure(
    "model-speedups",
    "Speedup on every problem solved",
    f"The best kernel of each submission{EACH}",
    "model",
    tall=True,
)
def speedups(request: HttpRequest) -> Drawn:
    found, entries, titles = asked(request)
    series = series_of(entries, titles)
    return _drawn(found, charts.speedups_by_problem(series), series_table(series))


def _drawn(found: LanguageModel, spec: Spec, table: Table) -> Drawn:
    board = Crumb(text="Leaderboard", url=url("board"))
    model = Crumb(text=found.name, url=url("model", found.slug))
    return Drawn(spec=spec, table=table, crumbs=(board, model))


def model_figures(found: LanguageModel, entries: Sequence[Entry]) -> list[dict[str, object]]:
    shown = [failures] if any(entry.modes for entry in entries) else []
    shown += [speedups] if any(entry.score.correct for entry in entries) else []
    return [framed(one, f"model={found.slug}") for one in shown]


def named(entry: Entry) -> str:
    return f"{entry.harness}, no. {entry.submission}"


def mode_counts(entries: Sequence[Entry]) -> list[ModeCounts]:
    return [ModeCounts(name=named(entry), counts=entry.modes) for entry in entries if entry.modes]


def series_of(entries: Sequence[Entry], titles: Titles) -> list[Series]:
    found = []
    for entry in entries:
        timed = [cell for cell in entry.cells if cell.best_speedup is not None]
        points = tuple((titles[cell.problem], cell.best_speedup or 0.0) for cell in timed)
        links = tuple(url("run", cell.run) for cell in timed)
        if points:
            found.append(Series(name=named(entry), points=points, links=links))
    return found


def series_table(series: Sequence[Series]) -> Table:
    """Return a row for each problem, a column for each submission."""
    by_name = [dict(one.points) for one in series]
    names = dict.fromkeys(name for one in series for name, _ in one.points)
    columns = ("Problem, ×", *(one.name for one in series))
    return Table(columns=columns, rows=[[n, *(of.get(n) for of in by_name)] for n in names])
