"""Draws the figures of one problem: how attempts at it fail, how kernels scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Table, canonical_query
from leaderboard.figures.charts import boards as board_charts
from leaderboard.figures.charts import speedups as charts
from leaderboard.figures.charts.boards import ModeCounts
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.charts.speedups import SpeedupLine
from leaderboard.figures.figure_rows import endings_in_words
from leaderboard.figures.findings import endings_found, said
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, Figure, figure, framed
from leaderboard.figures.tables import mode_table
from leaderboard.kit.links import url, with_query
from leaderboard.kit.row_number import row_number
from leaderboard.models import Problem
from leaderboard.problem_pages import scaling
from leaderboard.read_model import boards, problem_results
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.filters import SETTING_FILTERS, setting_filters
from leaderboard.read_model.problem_results import SettingTotals

MOST_LINES, MOST_BARS = 6, 24
READS = ("problem", *SETTING_FILTERS)
JOINED = (
    "A line joins the runs of one kernel, the same source by the same model and harness, over all "
    "hardware with this GPU, also where it was handed in more than once."
)
Scaled = Mapping[str, Sequence[tuple[scaling.Place, float]]]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Describes where sizes, or numbers of ranks, lie on an axis. Where it is `stepped`, there is
    nothing between two of them."""

    at: Mapping[scaling.Place, float]
    title: str
    text: Callable[[float], str]
    unit: str
    stepped: bool = False

    def ticks(self) -> list[tuple[float, str]]:
        return [(x, self.text(x)) for x in self.at.values()]


def problem_asked(request: HttpRequest) -> Problem:
    """Return the problem of `?problem=<number>`. Raises Http404 for an unknown number."""
    return get_object_or_404(Problem, number=row_number(request.GET.get("problem", "")))


def asked(request: HttpRequest) -> tuple[Problem, Setting | None]:
    """Return that problem, and the setting asked for."""
    found = problem_asked(request)
    settings = problem_results.in_view(
        boards.known_settings(), problem_results.totals_by_setting(found)
    )
    setting, _ = setting_filters(request, settings)
    return found, setting


@figure(
    "problem-failures",
    "How attempts end",
    "Share of attempts by outcome, by model and harness.",
    *READS,
    tall=True,
)
def failures(request: HttpRequest) -> Drawn:
    found, setting = asked(request)
    modes = problem_results.mode_rows(found, setting)
    counts = [ModeCounts(name=name, counts=ended) for name, ended in modes.items()]
    spec = board_charts.failure_modes(counts[:MOST_BARS])
    drawn = drawn_of(request, found, setting, spec, mode_table(counts))
    return replace(drawn, title=endings_found(failures.title, modes.values()))


@figure(
    "speedup-by-size",
    "Speedup against size",
    "The best kernels of the fastest submissions, all else equal.",
    *READS,
)
def by_size(request: HttpRequest) -> Drawn:
    found, setting = asked(request)
    drawn = _scaled(request, found, setting, by_size, size_lines(found, setting))
    return replace(drawn, under=setting.in_words(but="size") if setting else "")


@figure("speedup-by-ranks", "Speedup against ranks", JOINED, *READS)
def by_ranks(request: HttpRequest) -> Drawn:
    found, setting = asked(request)
    drawn = _scaled(request, found, setting, by_ranks, rank_lines(found, setting))
    if setting is None:
        return drawn
    gpu, _ = scaling.classes_like(setting)
    return replace(drawn, under=replace(setting, hardware_id=gpu).in_words(but="world_size"))


Lines = tuple[list[SpeedupLine], Scale]


def size_lines(found: Problem, setting: Setting | None) -> Lines:
    scale = size_scale(found, setting)
    return speedup_lines(scaling.over_sizes(found, setting), scale), scale


def rank_lines(found: Problem, setting: Setting | None) -> Lines:
    scale = rank_scale(found)
    if setting is None:
        return [], scale
    _, classes = scaling.classes_like(setting)
    return speedup_lines(scaling.over_ranks(found, setting, classes), scale), scale


def _scaled(
    request: HttpRequest, found: Problem, setting: Setting | None, one: Figure, drawn: Lines
) -> Drawn:
    lines, scale = drawn
    at = [] if scale.stepped or not lines else charts.crossings(lines[-1].points)
    crossed = [(x, scale.text(x) + scale.unit) for x in at]
    spec = charts.speedup_lines(lines, scale.title, scale.ticks(), crossed)
    made = drawn_of(request, found, setting, spec, line_table(lines, scale))
    return replace(made, title=scaled_title(one, drawn))


def scaled_title(one: Figure, drawn: Lines) -> str:
    """Return the title with where the best kernel crosses the reference."""
    lines, scale = drawn
    return said(one.title, crossing_text(lines[-1], scale)) if lines else one.title


def drawn_of(
    request: HttpRequest, found: Problem, setting: Setting | None, spec: Spec, table: Table
) -> Drawn:
    """Return a figure of a problem in a setting, under the address of its page."""
    query = canonical_query(request, (*SETTING_FILTERS,))
    page = with_query(url("problem", found.number, found.slug), query)
    return Drawn(
        spec=spec,
        table=table,
        crumbs=(
            Crumb(text="Problems", url=url("problems")),
            Crumb(text=str(found), url=page),
        ),
        under=str(setting or ""),
    )


def problem_figures(
    found: Problem,
    stood: Sequence[SettingTotals],
    setting: Setting | None,
    query: str,
    models: int,
) -> dict[str, object]:
    """Return the frames of figures that have something to show, and what is told in words instead;
    `query` names the setting, `models`
    counts models and harnesses with attempts there."""
    shown = [failures] if models >= LEAST_DRAWN else []
    shown += [by_size] if scaling.sizes_vary(stood, setting) else []
    shown += [by_ranks] if scaling.ranks_vary(stood, setting) else []
    address = f"problem={found.number}" + (f"&{query}" if query else "")
    here = [one.modes for one in stood if one.setting == setting]
    titles = {failures.name: endings_found(failures.title, here)}
    if by_size in shown:
        titles[by_size.name] = scaled_title(by_size, size_lines(found, setting))
    if by_ranks in shown:
        titles[by_ranks.name] = scaled_title(by_ranks, rank_lines(found, setting))
    frames = [framed(one, address, title=titles.get(one.name, "")) for one in shown]
    return {"figures": frames, "endings": endings_told(stood, setting, models)}


def endings_told(stood: Sequence[SettingTotals], setting: Setting | None, models: int) -> str:
    """Return a sentence on how attempts end, where these are of too few models for a figure."""
    here = next((one for one in stood if one.setting == setting and one.made), None)
    if here is None or models >= LEAST_DRAWN:
        return ""
    return f"How attempts end here: {endings_in_words(here.modes)}."


def size_scale(found: Problem, setting: Setting | None) -> Scale:
    """Return a scale by wire bytes, where every size has its own number of them; else by
    elements."""
    ranks = str(setting.world_size) if setting else ""
    costs = {size: by.get(ranks, {}) for size, by in found.payload.get("costs", {}).items()}
    wire = {size: cost.get("wire_bytes", 0.0) for size, cost in costs.items()}
    if len(set(wire.values())) == len(wire) and all(wire.values()):
        x = "least bytes that the busiest rank sends or receives"
        return Scale(at=wire, title=x, text=cells.bytes_text, unit="")
    shapes = found.payload["sizes"].items()
    elements = {size: float(shape["m"] * shape["n"]) for size, shape in shapes}
    return Scale(at=elements, title="m × n", text=cells.count_text, unit=" elements")


def rank_scale(found: Problem) -> Scale:
    at = {ranks: float(ranks) for ranks in found.payload["world_sizes"]}
    return Scale(
        at=at, title="ranks", text=lambda ranks: f"{ranks:.3g}", unit=" ranks", stepped=True
    )


def speedup_lines(lines: Scaled, scale: Scale) -> list[SpeedupLine]:
    """Return the fastest lines with several places, and last the best of all at every place, where
    that is another line."""
    best: dict[float, float] = {}
    made: list[SpeedupLine] = []
    for name, points in lines.items():
        placed = sorted((scale.at[at], speedup) for at, speedup in points if at in scale.at)
        if len(placed) > 1:
            made.append(SpeedupLine(name=name, points=tuple(placed)))
        for x, speedup in placed:
            best[x] = max(best.get(x, speedup), speedup)
    envelope = SpeedupLine(name="best of all", points=tuple(sorted(best.items())), best=True)
    if len(best) < 2 or [line.points for line in made] == [envelope.points]:
        return _coloured(made)
    made.sort(key=lambda line: -max(speedup for _, speedup in line.points))
    return [*_coloured(made[:MOST_LINES]), envelope]


def _coloured(lines: Sequence[SpeedupLine]) -> list[SpeedupLine]:
    """Give lines the colours of their models, whose names theirs begin with."""
    looks = board_charts.styles([line.name.rpartition(" (")[0] for line in lines])
    return [replace(line, colour=look.colour) for line, look in zip(lines, looks, strict=True)]


def line_table(lines: Sequence[SpeedupLine], scale: Scale) -> Table:
    xs = sorted({x for line in lines for x, _ in line.points})
    rows = [[line.name, *(dict(line.points).get(x) for x in xs)] for line in lines]
    heads = (scale.text(x) + scale.unit for x in xs)
    return Table(columns=("Speedup × of", *heads), rows=rows)


def crossing_text(best: SpeedupLine, scale: Scale) -> str:
    """Say where the best kernel crosses the reference with NCCL."""
    at = charts.crossings(best.points)
    word = "faster" if best.points[0][1] > 1 else "slower"
    if not at:
        return f"the best kernel is {word} than NCCL wherever it was measured"
    if scale.stepped:
        low, high = next((a, b) for (a, _), (b, _) in pairwise(best.points) if a < at[0] < b)
        other = {"faster": "slower", "slower": "faster"}[word]
        return f"the best kernel is {word} than NCCL on {low:g} ranks and {other} on {high:g}"
    where = scale.text(at[0]) + scale.unit
    return f"the best kernel is {word} than NCCL below about {where}"
