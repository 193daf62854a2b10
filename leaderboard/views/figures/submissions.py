"""Figures of one submission, and of all submissions of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import Http404, HttpRequest

from leaderboard import boards
from leaderboard.boards import Setting
from leaderboard.charts import boards as board_charts
from leaderboard.charts import submissions as charts
from leaderboard.charts.boards import ModeCounts
from leaderboard.charts.submissions import Speedup, Trail
from leaderboard.models import Standing, Submission
from leaderboard.pages import Page, Table, public_page
from leaderboard.submission_kernels import (
    Judged,
    kernels_of,
    last_steps,
    modes_by_category,
    progress_of,
    typical,
)
from leaderboard.views.figures.board import mode_table
from leaderboard.views.figures.frame import figure, figure_page


def asked(request: HttpRequest) -> tuple[Submission, list[Judged]]:
    """The submission of `?submission=<number>` with its kernels."""
    number = request.GET.get("submission", "")
    if not (number.isascii() and number.isdigit() and len(number) < 15):
        raise Http404
    submission = Submission.objects.filter(pk=int(number)).first()
    if submission is None:
        raise Http404
    return submission, kernels_of(submission, setting_of(submission))


def setting_of(submission: Submission) -> Setting | None:
    """Where most of its problems were judged."""
    own = Standing.objects.filter(submission=submission).order_by(
        "-attempted", *boards.SETTING_FIELDS
    )
    found = own.values(*boards.SETTING_FIELDS).first()
    return Setting(**found) if found else None


@public_page("submission")
def speedups(request: HttpRequest) -> Page:
    submission, kernels = asked(request)
    found = speedups_of(kernels)
    return figure_page(charts.speedups(found), speedup_table(found), submission)


@public_page("submission")
def failures(request: HttpRequest) -> Page:
    submission, kernels = asked(request)
    counts = mode_counts(kernels)
    return figure_page(board_charts.failure_modes(counts), mode_table(counts), submission)


@public_page("submission")
def progress(request: HttpRequest) -> Page:
    submission, kernels = asked(request)
    trails = trails_of(kernels)
    return figure_page(charts.progress(trails), trail_table(trails), submission)


def submission_figures(found: Submission, kernels: Sequence[Judged]) -> list[dict[str, object]]:
    """As far as there is something to show."""
    tail, made = f"?submission={found.pk}", []
    if trails := trails_of(kernels):
        title = "Progress by step"
        says = "The best speedup so far of every attempt, and the median of those solved by then."
        table = trail_table(trails)
        made.append(figure(f"progress{tail}", title, says, table=table, tall=True))
    if counts := mode_counts(kernels):
        title, says = "How attempts end", "Share of attempts by outcome, by category."
        table = mode_table(counts)
        made.append(figure(f"submission-failures{tail}", title, says, table=table, tall=True))
    if found_speedups := speedups_of(kernels):
        title, says = "Speedup of every correct kernel", "Bars are 95 % intervals."
        table = speedup_table(found_speedups)
        made.append(figure(f"speedups{tail}", title, says, table=table, tall=True))
    return made


def speedup_table(found: Sequence[Speedup]) -> Table:
    columns = ("Problem", "Speedup, ×", "95 % low", "95 % high")
    return Table(columns=columns, rows=[[s.name, s.speedup, s.low, s.high] for s in found])


def speedups_of(kernels: Iterable[Judged]) -> list[Speedup]:
    """Every correct kernel that counts: the last step of each attempt."""
    runs = [(judged.kernel, judged.run) for judged in last_steps(kernels) if judged.speedup]
    return [
        Speedup(
            name=kernel.problem.title,
            speedup=run.speedup,
            low=run.speedup_low,
            high=run.speedup_high,
        )
        for kernel, run in runs
        if run and run.speedup and run.speedup_low and run.speedup_high
    ]


def mode_counts(kernels: Iterable[Judged]) -> list[ModeCounts]:
    modes = modes_by_category(last_steps(kernels))
    return [ModeCounts(name=name, counts=counts) for name, counts in modes.items()]


def trails_of(kernels: Iterable[Judged]) -> list[Trail]:
    """The median first, then every attempt with several steps."""
    progress = progress_of(kernels)
    if not progress:
        return []
    _, medians = typical(progress)
    middle = Trail(name="median of what is solved by then", best=tuple(medians), typical=True)
    return [middle, *(Trail(name=one.name, best=one.best) for one in progress)]


def trail_table(trails: Sequence[Trail]) -> Table:
    steps = len(trails[0].best) if trails else 0
    solved = [sum(t.best[i] is not None for t in trails if not t.typical) for i in range(steps)]
    rows: list[list[object]] = [["solved", *solved]] if trails else []
    rows += [[trail.name, *trail.best] for trail in trails]
    return Table(columns=("Problem, ×", *(f"step {i + 1}" for i in range(steps))), rows=rows)
