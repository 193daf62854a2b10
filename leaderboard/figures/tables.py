"""Tabulates what boards and their figures draw: a name first in every row."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from leaderboard.delivery.pages import Table
from leaderboard.figures.charts.boards import ByCategory, ModeCounts, Spread
from leaderboard.figures.charts.curves import Chances, Curve
from leaderboard.metrics.failures import FAILURE_MODES


def curve_table(curves: Sequence[Curve]) -> Table:
    """Return per cent of problems at every threshold that any of the curves has; what was read off
    a plot has a row of its own."""
    points = sorted({point for curve in curves for point in curve.thresholds})
    rows = []
    for curve in curves:
        at = dict(zip(curve.thresholds, curve.shares, strict=True))
        told = {point: 100 * share for point, share in at.items() if share is not None}
        if curve.published:
            read = {point: share for point, share in told.items() if point not in curve.counted}
            told = {point: share for point, share in told.items() if point in curve.counted}
            rows.append([f"{curve.name} (read off the published plot)", *map(read.get, points)])
        rows.append([curve.name + curve.origin, *map(told.get, points)])
    return Table(columns=("Model", *(f"p = {point:g}, %" for point in points)), rows=rows)


def mode_table(counts: Sequence[ModeCounts]) -> Table:
    rows = [[row.name, *(row.counts.get(mode, 0) for mode in FAILURE_MODES)] for row in counts]
    return Table(columns=("Model, number of kernels", *FAILURE_MODES), rows=rows)


def chance_table(found: Sequence[Chances]) -> Table:
    most = max((row.samples[-1] for row in found), default=0)
    rows = []
    for row in found:
        for kind, shares in (("pass@k", row.passing), ("fast@k", row.fast)):
            at = dict(zip(row.samples, shares, strict=True)) if shares else {}
            known = [at.get(k) for k in range(1, most + 1)]
            per_cent = [None if share is None else 100 * share for share in known]
            rows.append([f"{row.name}, {kind}", *per_cent])
    columns = ("Model", *(f"k = {k}, %" for k in range(1, most + 1)))
    return Table(columns=columns, rows=rows)


def spread_table(found: Sequence[Spread]) -> Table:
    rows: list[list[object]] = []
    for row in found:
        ordered = sorted(row.speedups)
        many = len(ordered) > 1
        quarters = statistics.quantiles(ordered, method="inclusive") if many else ordered * 3
        ends = [ordered[0], *quarters, ordered[-1]] if ordered else [None] * 5
        rows.append([row.name, len(ordered), *ends])
    columns = (
        "Model",
        "Problems",
        "Least, ×",
        "Quartile, ×",
        "Median, ×",
        "Quartile, ×",
        "Most, ×",
    )
    return Table(columns=columns, rows=rows)


def category_table(found: Sequence[ByCategory], titles: Sequence[str]) -> Table:
    """Return a row for each category, in per cent."""
    rows = [
        [title, *(None if row.values[i] is None else 100 * row.values[i] for row in found)]  # type: ignore[operator]
        for i, title in enumerate(titles)
    ]
    return Table(columns=("Category, %", *(row.name for row in found)), rows=rows)
