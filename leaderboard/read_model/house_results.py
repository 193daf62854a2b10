"""Reads what this site's own kernels gain over the reference, in one timed setting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leaderboard.metrics.tallies import Cell
from leaderboard.models import LeaderboardRow, Run
from leaderboard.models.model_names import HOUSE
from leaderboard.models.runs import RunQuerySet
from leaderboard.models.summaries import LeaderboardRowQuerySet
from leaderboard.read_model.leaderboard_rows import cells_in
from leaderboard.read_model.setting import SETTING_FIELDS, Setting

TIMES = ("speedup", "speedup_low", "speedup_high", "kernel_us", "baseline_us", "idle")
_MECHANISM = re.compile(r"^# mechanism: (.+(?:\n#   .+)*)", re.M)


class HouseResult(NamedTuple):
    """Holds the timed house kernel of a problem; `mechanism` is what its header says. `idle` is
    None where its run was not profiled."""

    problem: int
    title: str
    slug: str
    speedup: float
    low: float
    high: float
    kernel_us: float
    baseline_us: float
    utilisation: float | None
    idle: float | None
    mechanism: str
    kernel: str
    run: str

    @property
    def is_faster(self) -> bool:
        """Return True where the whole 95 % interval is above 1."""
        return self.low > 1

    @property
    def bound_of_reference(self) -> float | None:
        """Return the share of the roofline bound that the reference reaches."""
        share = self.utilisation
        return None if share is None else share * self.kernel_us / self.baseline_us


def settings_of_house(known: Sequence[Setting]) -> dict[Setting, int]:
    """Return, of these settings, those in which house kernels are timed, in their order, and on how
    many problems; one query."""
    rows = _rows().order_by().values_list(*SETTING_FIELDS, "attempted")
    counts = {tuple(place): count for *place, count in rows}
    places = {one: tuple(getattr(one, name) for name in SETTING_FIELDS) for one in known}
    timed = {one: place for one, place in places.items() if one.is_timed}
    return {one: counts[place] for one, place in timed.items() if place in counts}


def house_results(setting: Setting) -> list[HouseResult]:
    """Return the timed house kernels in a setting, by problem; two queries."""
    rows = _rows().filter(**vars(setting)).values_list("cells", flat=True)
    cells = [cell for row in rows for cell in cells_in(row) if cell.best_speedup is not None]
    runs = {str(run.pk): run for run in _with_sources(cell.run for cell in cells)}
    return [_result(cell, runs[cell.run]) for cell in sorted(cells, key=lambda one: one.problem)]


def _with_sources(runs: Iterable[str]) -> RunQuerySet:
    found = Run.objects.filter(pk__in=list(runs)).select_related(
        "kernel__problem", "kernel__source"
    )
    named = ("number", "title", "slug")
    return found.only(*TIMES, *(f"kernel__problem__{name}" for name in named), "kernel__source")


def _result(cell: Cell, run: Run) -> HouseResult:
    problem, source = run.kernel.problem, run.kernel.source
    return HouseResult(
        problem=problem.number,
        title=problem.title,
        slug=problem.slug,
        speedup=run.speedup or 0.0,
        low=run.speedup_low or 0.0,
        high=run.speedup_high or 0.0,
        kernel_us=run.kernel_us or 0.0,
        baseline_us=run.baseline_us or 0.0,
        utilisation=cell.utilisation,
        idle=run.idle,
        mechanism=mechanism_in(source.text or ""),
        kernel=source.pk,
        run=cell.run,
    )


def mechanism_in(source: str) -> str:
    """Return the comment `# mechanism:` of a source, in one line; empty where there is none."""
    found = _MECHANISM.search(source)
    return found[1].replace("\n#   ", " ") if found else ""


def _rows() -> LeaderboardRowQuerySet:
    return LeaderboardRow.objects.ranked().filter(submission__model__slug=HOUSE)
