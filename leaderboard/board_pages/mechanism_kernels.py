"""Finds the correct kernels of a board with what they use, and draws how fast these are."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.http import HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.cards import Card, bars_of
from leaderboard.delivery.pages import Crumb
from leaderboard.figures.charts import boards as charts
from leaderboard.figures.charts.boards import Spread
from leaderboard.figures.charts.drawing import KERNEL_COLOUR
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, figure, framed
from leaderboard.figures.tables import spread_table
from leaderboard.kit.links import kernel_at, url
from leaderboard.metrics.mechanisms import NCCL, mechanism_name
from leaderboard.read_model import boards
from leaderboard.read_model.boards import BoardRow, Cell
from leaderboard.read_model.details import Speeds, speeds_of
from leaderboard.read_model.filters import SETTING_FILTERS, Filter, setting_filters
from leaderboard.read_model.scopes import BoardScope, scope
from leaderboard.read_model.setting import Setting

PARAMETERS = (*SETTING_FILTERS,)
WITHOUT_NCCL = "no NCCL"


class Right(NamedTuple):
    """Holds a submission's best kernel of a problem that it solved."""

    entry: BoardRow
    cell: Cell


def right_kernels(entries: Iterable[BoardRow]) -> list[Right]:
    """Return the best correct kernel of each submission and problem, without the references'. The
    site's own kernels stand in where there are no others."""
    return [Right(entry, cell) for entry in own_of(entries) for cell in entry.cells if cell.correct]


def own_of(entries: Iterable[BoardRow]) -> list[BoardRow]:
    """Return the rows of models and people; the site's own where there are no others."""
    every = list(entries)
    return [entry for entry in every if not entry.baseline] or [e for e in every if e.house]


def chosen(request: HttpRequest) -> tuple[Setting | None, list[Filter], BoardScope, list[Right]]:
    """Return the setting asked for with its controls, the problems in scope, and the kernels."""
    setting, controls = setting_filters(request, boards.known_settings())
    found = scope(request, ranks=setting.world_size if setting else None)
    entries = boards.judged(setting, found.scored, ahead=("cells",)) if setting else []
    return setting, controls, found, right_kernels(entries)


def tags_of(right: Iterable[Right]) -> list[str]:
    """Return the mechanisms that occur, the commonest first."""
    counts = Counter(tag for one in right for tag in one.cell.mechanisms)
    return [tag for tag, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]


def nccl_speeds(every: Iterable[Speeds]) -> tuple[float, float] | None:
    """Return the median speedups of correct kernels that call NCCL and of those that do not; None
    where fewer than LEAST_DRAWN were timed of either."""
    calling, moving = list[float](), list[float]()
    for speeds in every:
        calling += speeds.calling
        moving += speeds.moving
    if min(len(calling), len(moving)) < LEAST_DRAWN:
        return None
    return statistics.median(calling), statistics.median(moving)


def finding(right: Iterable[Right]) -> str:
    """Say how fast kernels are that call NCCL and that do not; empty for too few."""
    speeds = nccl_speeds([speeds_of(one.cell for one in right)])
    if speeds is None:
        return ""
    calling, moving = map(cells.ratio_text, speeds)
    return f"Kernels that call NCCL reach {calling}, those that do not {moving}"


def fastest(right: Iterable[Right]) -> Right | None:
    """Return the fastest that was timed."""
    timed = [one for one in right if one.cell.best_speedup is not None]
    return max(timed, key=lambda one: one.cell.best_speedup or 0.0, default=None)


def spreads_of(right: Sequence[Right]) -> list[Spread]:
    """Return a row of speedups for each mechanism with enough timed kernels, and one for kernels
    without NCCL, the best median first."""
    timed = [one for one in right if one.cell.best_speedup is not None]
    groups = {
        mechanism_name(tag): [one for one in timed if tag in one.cell.mechanisms]
        for tag in tags_of(timed)
    }
    groups[WITHOUT_NCCL] = [one for one in timed if NCCL not in one.cell.mechanisms]
    made = [_spread(name, own) for name, own in groups.items() if len(own) >= LEAST_DRAWN]
    return sorted(made, key=lambda row: -statistics.median(row.speedups))


def _spread(name: str, own: Sequence[Right]) -> Spread:
    return Spread(
        model=name,
        name=name,
        problems=tuple(f"problem {cell.problem}, by {entry.model}" for entry, cell in own),
        speedups=tuple(one.cell.best_speedup or 0.0 for one in own),
        links=tuple(kernel_at(one.cell.kernel, one.cell.run) for one in own),
    )


def speed_frame(right: Sequence[Right], query: str) -> dict[str, object] | None:
    """Return the frame of the figure; None for too few rows, and where nothing was timed."""
    if len(spreads_of(right)) < LEAST_DRAWN:
        return None
    return framed(mechanism_speedups, query, title=finding(right))


def card_of(right: Sequence[Right], where: str) -> Card:
    """Return the picture for links: the median speedup by what kernels use."""
    medians = [(row.name, statistics.median(row.speedups)) for row in spreads_of(right)]
    return Card(
        title=finding(right) or "Mechanisms by which kernels move bytes between GPUs",
        says=f"Median speedup over PyTorch + NCCL on {where}" if medians else "",
        bars=bars_of([(name, value, cells.ratio_text(value)) for name, value in medians]),
    )


@figure(
    "mechanism-speedups",
    "How fast kernels are by what they use",
    "A point is the best kernel of a submission for a problem. A kernel stands in the row of each"
    " mechanism that it uses; mechanisms of fewer than"
    f" {LEAST_DRAWN} kernels are left out.",
    *PARAMETERS,
    tall=True,
)
def mechanism_speedups(request: HttpRequest) -> Drawn:
    setting, _, _, right = chosen(request)
    rows = spreads_of(right)
    return Drawn(
        spec=charts.spreads(rows, colour=KERNEL_COLOUR),
        table=spread_table(rows),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="Mechanisms", url=url("mechanisms")),
        ),
        under=str(setting or ""),
        title=finding(right),
    )
