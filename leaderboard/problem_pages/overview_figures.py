"""Draws the figures of the list of problems, under its filters: rooflines, speedups, failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.http import HttpRequest

from leaderboard.delivery.pages import Crumb, Table, canonical_query
from leaderboard.figures.charts import boards as board_charts
from leaderboard.figures.charts import problems as charts
from leaderboard.figures.charts.boards import ModeCounts
from leaderboard.figures.charts.drawing import Spec
from leaderboard.figures.charts.problems import Axes, Limit, ProblemSpread, Reach
from leaderboard.figures.findings import endings_found, said, spread_found
from leaderboard.figures.frame import LEAST_DRAWN, Drawn, Figure, figure, framed
from leaderboard.figures.tables import mode_table
from leaderboard.kit.links import url, with_query
from leaderboard.metrics import floors
from leaderboard.metrics.floors import Limits
from leaderboard.models import Problem
from leaderboard.read_model.baselines import gpu_of
from leaderboard.read_model.problem_list import LIST_FILTERS, Listed, baselines_of, listed
from leaderboard.read_model.setting import tells_times

LINKS = Axes(
    x="least bytes that the busiest rank sends or receives",
    y="GB/s through its links",
    unit="GB/s",
)
ARITHMETIC = Axes(x="operations a byte sent or received", y="TFLOP/s of a rank", unit="TFLOP/s")


@figure(
    "roofline-links",
    "How much of the links problems use",
    "A line joins reference and best kernel.",
    *LIST_FILTERS,
    tall=True,
)
def links(request: HttpRequest) -> Drawn:
    found = listed(request)
    reaches = link_reaches(found)
    spec = charts.roofline(reaches, link_limits(limits_of(found)), LINKS)
    drawn = _drawn(request, found, spec, reach_table(reaches, LINKS))
    return replace(drawn, title=title_of(links, found))


@figure(
    "roofline",
    "Roofline",
    "Problems that only move bytes have no place on it.",
    *LIST_FILTERS,
    tall=True,
)
def arithmetic(request: HttpRequest) -> Drawn:
    found = listed(request)
    reaches = arithmetic_reaches(found)
    spec = charts.roofline(reaches, arithmetic_limits(limits_of(found)), ARITHMETIC)
    drawn = _drawn(request, found, spec, reach_table(reaches, ARITHMETIC))
    return replace(drawn, title=title_of(arithmetic, found))


@figure(
    "speedups-by-problem",
    "Speedups by problem",
    "The best kernel of each submission that solved it.",
    *LIST_FILTERS,
    tall=True,
)
def spreads(request: HttpRequest) -> Drawn:
    found = listed(request)
    rows = spreads_of(found)
    drawn = _drawn(request, found, charts.spreads(rows), spread_table(rows))
    return replace(drawn, title=title_of(spreads, found))


@figure(
    "failures-by-problem",
    "How attempts at each problem end",
    "Share of attempts by outcome.",
    *LIST_FILTERS,
    tall=True,
)
def failures(request: HttpRequest) -> Drawn:
    found = listed(request)
    counts = modes_by_problem(found)
    drawn = _drawn(request, found, board_charts.failure_modes(counts), mode_table(counts))
    return replace(drawn, title=title_of(failures, found))


def _drawn(request: HttpRequest, found: Listed, spec: Spec, table: Table) -> Drawn:
    page = with_query(url("problems"), canonical_query(request, LIST_FILTERS))
    narrowed = [f"{one.label}: {one.text}" for one in found.controls if one.value]
    return Drawn(
        spec=spec,
        table=table,
        crumbs=(Crumb(text="Problems", url=page),),
        under=" · ".join(narrowed),
    )


def overview_figures(found: Listed, query: str) -> list[dict[str, object]]:
    """Return the frames of figures that have something to show; `query` holds the filters."""
    stood = [found.stood[one.number] for one in found.shown if one.number in found.stood]
    costs = [cost for cost in map(found.cost, timed(found)) if cost and cost["wire_bytes"]]
    shown = [links] if len(costs) >= LEAST_DRAWN else []
    shown += [arithmetic] if sum(cost["flops"] > 0 for cost in costs) >= LEAST_DRAWN else []
    is_fast = sum(one.best_speedup is not None for one in stood) >= LEAST_DRAWN
    shown += [spreads] if is_fast else []
    shown += [failures] if any(one.submissions for one in stood) else []
    return [framed(one, query, title=title_of(one, found)) for one in shown]


def title_of(one: Figure, found: Listed) -> str:
    """Return the title of one of these figures with what it shows."""
    if one is spreads:
        best = [max(row.speedups) for row in spreads_of(found)]
        return spread_found(f"{one.title}, the best", best)
    if one is failures:
        return endings_found(one.title, (row.counts for row in modes_by_problem(found)))
    reaches = link_reaches(found) if one is links else arithmetic_reaches(found)
    pairs = [(row.best, row.baseline) for row in reaches]
    both = [best > base for best, base in pairs if best is not None and base is not None]
    finding = f"{sum(both)} of {len(both)} best kernels reach more than the reference"
    return said(one.title, finding if both else "")


def timed(found: Listed) -> list[Problem]:
    """Return the problems shown that have a time on a GPU whose limits are known."""
    return [one for one in found.shown if is_timed(one, found)] if limits_of(found) else []


def few_timed(found: Listed) -> int:
    """Return how many these are where they are too few to be drawn, else 0."""
    count = len(timed(found))
    return count if count < LEAST_DRAWN else 0


def limits_of(found: Listed) -> Limits | None:
    """Return the limits of the GPU that the times are from. Costs are in bfloat16, so other types
    have none."""
    if found.setting is None:
        baselines = [b for p in found.every for b in baselines_of(p)[:1]]
        return floors.limits_of(gpu_of(baselines[0])) if baselines else None
    if found.setting.dtype != floors.DTYPE:
        return None
    return floors.limits_of(found.hardware)


def times_of(problem: Problem, found: Listed) -> tuple[float | None, float | None]:
    """Return the microseconds of reference and best kernel. On a site that has judged nothing the
    reference's are those measured alone; other times of it are no match for those of kernels."""
    judged = found.judged.get(problem.number)
    if judged and judged.baseline_us is not None:
        return judged.baseline_us, judged.kernel_us
    return measured_alone(problem, found), None


def is_timed(problem: Problem, found: Listed) -> bool:
    """Return whether there are such times."""
    stood = found.stood.get(problem.number)
    has_run = bool(stood and stood.run_id) and tells_times(found.setting)
    return has_run or measured_alone(problem, found) is not None


def measured_alone(problem: Problem, found: Listed) -> float | None:
    if found.setting is None:
        for row in baselines_of(problem):
            if (row["size"], row["world_size"]) == (found.size, found.ranks):
                return float(row["us"])
    return None


def link_reaches(found: Listed) -> list[Reach]:
    return [
        _reach(problem, found, amount=wire / 1e3, x=wire)
        for problem, wire, _ in _costs(found)
        if wire
    ]


def arithmetic_reaches(found: Listed) -> list[Reach]:
    return [
        _reach(problem, found, amount=flops / 1e6, x=flops / wire)
        for problem, wire, flops in _costs(found)
        if wire and flops
    ]


def _costs(found: Listed) -> Iterator[tuple[Problem, float, float]]:
    """Yield bytes and operations of every problem that has a time; none without a GPU's limits."""
    if limits_of(found) is None:
        return
    for problem in found.shown:
        cost = found.cost(problem)
        if cost and times_of(problem, found)[0]:
            yield problem, cost["wire_bytes"], cost["flops"]


def _reach(problem: Problem, found: Listed, *, amount: float, x: float) -> Reach:
    """Return a problem's point on a roofline; `amount` a microsecond is the unit of the axis."""
    baseline_us, kernel_us = times_of(problem, found)
    return Reach(
        name=str(problem),
        x=x,
        baseline=amount / baseline_us if baseline_us else None,
        best=amount / kernel_us if kernel_us else None,
        link=_run_of(problem, found),
    )


def _run_of(problem: Problem, found: Listed) -> str:
    stood = found.stood.get(problem.number)
    return url("run", stood.run_id) if stood and stood.run_id else ""


def link_limits(limits: Limits | None) -> list[Limit]:
    if limits is None:
        return []
    made = [Limit(name=f"links, {limits.link_gb_s:g} GB/s", level=limits.link_gb_s, slope=0)]
    if limits.latency_us:
        name = f"one exchange, {limits.latency_us:g} µs"
        made.append(Limit(name=name, level=1 / (limits.latency_us * 1e3), slope=1))
    return made


def arithmetic_limits(limits: Limits | None) -> list[Limit]:
    if limits is None:
        return []
    peak = limits.flop_per_us() / 1e6
    return [
        Limit(name=f"matrix units, {peak:g} TFLOP/s", level=peak, slope=0),
        Limit(name=f"links, {limits.link_gb_s:g} GB/s", level=limits.link_gb_s / 1e3, slope=1),
    ]


def reach_table(reaches: Sequence[Reach], axes: Axes) -> Table:
    columns = ("Problem", axes.x, f"Reference, {axes.unit}", f"Best kernel, {axes.unit}")
    return Table(columns=columns, rows=[[r.name, r.x, r.baseline, r.best] for r in reaches])


def spreads_of(found: Listed) -> list[ProblemSpread]:
    return [
        ProblemSpread(
            name=str(problem),
            speedups=tuple(found.speedups[problem.number]),
            link=_run_of(problem, found),
        )
        for problem in found.shown
        if problem.number in found.speedups
    ]


def spread_table(rows: Sequence[ProblemSpread]) -> Table:
    columns = ("Problem", "Submissions", "Best, ×", "Median, ×", "Worst, ×")
    ordered = [(row.name, sorted(row.speedups)) for row in rows]
    return Table(
        columns=columns,
        rows=[[name, len(s), s[-1], s[len(s) // 2], s[0]] for name, s in ordered],
    )


def modes_by_problem(found: Listed) -> list[ModeCounts]:
    return [
        ModeCounts(
            name=str(problem),
            counts=judged.modes,
            link=url("problem", problem.number, problem.slug),
        )
        for problem in found.shown
        if (judged := found.judged.get(problem.number)) is not None and judged.submissions
    ]
