"""Draws how the best speedup at a problem grew, with the kernels that were records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.http import HttpRequest

from leaderboard.delivery.cells import ratio_text
from leaderboard.delivery.pages import Table
from leaderboard.figures.charts import speedups as charts
from leaderboard.figures.findings import said
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, drawn_from, figure, framed
from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.models import Problem, Run
from leaderboard.models.choices import Moderation, Visibility
from leaderboard.problem_pages.problem_figures import READS, asked, drawn_of
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.problem_results import SettingTotals, SubmissionRow

MOST_KERNELS = 2_000


class Timed(NamedTuple):
    """Holds a correct kernel of a model or a person when it was judged."""

    finished_at: datetime
    speedup: float
    low: float
    high: float
    kernel_us: float
    run: UUID
    model: str
    harness: str
    withheld: bool


@figure(
    "best-over-time",
    "Best over time",
    "The line is the record so far. A kernel takes it when its whole 95 % interval lies above the"
    " record's.",
    *READS,
)
def best_over_time(request: HttpRequest) -> Drawn:
    found, setting = asked(request)
    timed = timed_kernels(found, setting) if setting else []
    best = records_of(timed)
    points = [_point(one) for one in timed]
    spec = charts.over_time(points, [_point(one) for one in best])
    rows = [[_name(one), _day(one), one.speedup, "yes" if one in best else "no"] for one in timed]
    table = Table(columns=("Kernel of", "Judged", "Speedup, ×", "Record"), rows=rows)
    drawn = drawn_of(request, found, setting, spec, table)
    fastest = min(timed, key=lambda one: one.kernel_us, default=None)
    return replace(drawn, title=title_of(fastest and (fastest.model, fastest.speedup)))


def title_of(fastest: tuple[str, float] | None) -> str:
    """Return the title with the model of the fastest kernel, and its speedup."""
    if fastest is None:
        return best_over_time.title
    model, speedup = fastest
    return said(best_over_time.title, f"{visible(model)} is fastest, {ratio_text(speedup)}")


def timed_kernels(problem: Problem, setting: Setting) -> list[Timed]:
    """Return the correct kernels that were timed in a setting in the order in which they were
    judged; one query."""
    public = {"visibility": Visibility.PUBLIC, "moderation": Moderation.ACCEPTED}
    rows = (
        Run.objects.counted()
        .filter(kernel__problem=problem, speedup__isnull=False)
        .few(verdict="ok", **asdict(setting))
        .filter(**{f"kernel__submission__{name}": value for name, value in public.items()})
        .exclude(kernel__submission__model__is_baseline=True)
        .order_by("finished_at", "pk")
    )
    told = ("model__name", "harness", "withholds_source")
    whose = [f"kernel__submission__{name}" for name in told]
    times = ("finished_at", "speedup", "speedup_low", "speedup_high", "kernel_us")
    found = rows.values_list(*times, "pk", *whose)[:MOST_KERNELS]
    return [Timed(*row) for row in found]


def records_of(timed: Iterable[Timed]) -> list[Timed]:
    """Return the first, and each that was surely faster than the one before it: times that the
    clock cannot tell apart have intervals that overlap."""
    best: list[Timed] = []
    for one in timed:
        if not best or one.low > best[-1].high:
            best.append(one)
    return best


def _point(one: Timed) -> charts.Moment:
    says = f"{_name(one)}, {_day(one)}"
    at = one.finished_at.isoformat(timespec="seconds")
    return charts.Moment(at=at, speedup=one.speedup, says=says, link=url("run", one.run))


def _name(one: Timed) -> str:
    return f"{one.model} ({one.harness}{', source withheld' if one.withheld else ''})"


def _day(one: Timed) -> str:
    return one.finished_at.date().isoformat()


def over_time_frames(
    found: Problem,
    stood: Sequence[SettingTotals],
    setting: Setting | None,
    query: str,
    rows: Sequence[SubmissionRow],
) -> tuple[list[dict[str, object]], str]:
    """Return the frame of the figure, or a sentence where there are too few kernels for it; `rows`
    begin with the fastest kernel."""
    here = next((one for one in stood if one.setting == setting), None)
    if here is None or setting is None or not setting.is_timed or not here.correct:
        return [], ""
    if here.correct < LEAST_DRAWN:
        told = f"here {here.correct} {'was' if here.correct == 1 else 'were'} timed"
        return [], f"{drawn_from(best_over_time, 'correct kernels')}; {told}."
    address = f"problem={found.number}" + (f"&{query}" if query else "")
    fastest = (
        (row.submission__model__name, row.best_run__speedup)
        for row in rows
        if row.best_run__speedup is not None and not row.is_reference
    )
    title = title_of(next(fastest, None))
    return [framed(best_over_time, address, title=title)], ""
