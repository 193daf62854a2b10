"""Draws how rows of a board compare: curves over p and k, speedups, utilisation, failure modes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.charts.drawing import (
    COLOURS,
    SYMBOLS,
    Spec,
    height_px,
    label,
    labels,
    line_at,
    significant,
    speedup_axis,
    stacked_bars,
)
from leaderboard.metrics.failures import ENDINGS, FAILURE_MODES

MODE_COLOURS = {ending.mode: ending.colour for ending in ENDINGS}
DASHES = ("solid", "longdash", "dashdot")
OFF_A_PLOT = " (published plot)"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Holds fast_p over thresholds p, shares from 0 to 1, of one row; a published one was read off
    a plot and is drawn dotted.

    Curves of one model share its colour.
    """

    model: str
    name: str
    thresholds: tuple[float, ...]
    shares: tuple[float | None, ...]
    published: bool = False

    @property
    def origin(self) -> str:
        """Return the words to put behind its name."""
        return OFF_A_PLOT if self.published else ""


@dataclass(frozen=True, kw_only=True)
class ModeCounts:
    name: str
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Chances:
    """Holds pass@k and fast_p@k of one row, shares from 0 to 1, for each k of `samples`; a
    published one is drawn dotted, and has no `fast` where p is not 1."""

    model: str
    name: str
    samples: tuple[int, ...]
    passing: tuple[float | None, ...]
    fast: tuple[float | None, ...]
    published: bool = False


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Holds the speedup of the fastest correct kernel of each problem that a row solved."""

    model: str
    name: str
    problems: tuple[str, ...]
    speedups: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ByCategory:
    """Holds a share from 0 to 1, or None, for each category."""

    model: str
    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Style:
    """Says how a row is drawn; `nth` counts the rows of one model, which share its colour."""

    colour: str
    symbol: str
    nth: int


def styles(models: Sequence[str], order: Sequence[str] = ()) -> list[Style]:
    """Return a style for each row. Figures with one `order` of models give each one colour."""
    places = palette_places([*order, *models])
    made = []
    for at, model in enumerate(models):
        (place, turn), nth = places[model], models[:at].count(model)
        symbol = SYMBOLS[(place + turn + 3 * nth) % len(SYMBOLS)]
        made.append(Style(colour=COLOURS[place], symbol=symbol, nth=nth))
    return made


def palette_places(models: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return for each model its index in the palette, and how often the palette was used up before.

    A name hashes to its index, so that most models look the same wherever they are drawn; who finds
    it taken gets the next that is free. Grey, the last, is nobody's own.
    """
    own = grey = len(COLOURS) - 1
    found: dict[str, tuple[int, int]] = {}
    for model in dict.fromkeys(models):
        first, turn = zlib.crc32(model.encode()), len(found) // len(COLOURS)
        places = [*((first + i) % own for i in range(own)), grey]
        found[model] = next((at, turn) for at in places if (at, turn) not in found.values())
    return found


def fast_p_curves(curves: Sequence[Curve], p: float = 1.0, order: Sequence[str] = ()) -> Spec:
    """Draw per cent of problems over the threshold p; the asked `p` is marked beside 1."""
    looks = styles([curve.model for curve in curves], order)
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if curve.published else "lines",
            "name": label(curve.name) + curve.origin,
            "x": list(curve.thresholds),
            "y": [None if share is None else round(100 * share, 3) for share in curve.shares],
            "line": {
                "color": style.colour,
                "width": 1.5 if curve.published else 2.25,
                "dash": "dot" if curve.published else DASHES[style.nth % len(DASHES)],
                "shape": "linear" if curve.published else "hv",
            },
            "marker": {"symbol": style.symbol, "size": 6},
            "hovertemplate": "p = %{x}: %{y:.1f} %",
        }
        for curve, style in zip(curves, looks, strict=True)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": {"text": "speedup threshold p"}, "rangemode": "tozero"},
            "yaxis": {
                "title": {"text": "% of problems"},
                "rangemode": "tozero",
            },
            "shapes": [line_at(x=x) for x in sorted({1.0, p})],
            "showlegend": True,  # else nothing says whose a single curve is
            "hovermode": "closest",
        },
    }


def failure_modes(rows: Sequence[ModeCounts]) -> Spec:
    """Draw the kernels of each row as one bar, parted by failure mode, in per cent."""
    names = labels([row.name for row in rows])
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": mode,
            "y": names,
            "x": [row.counts.get(mode, 0) for row in rows],
            "text": [str(row.counts.get(mode, 0)) for row in rows],
            "textposition": "none",
            "marker": {"color": MODE_COLOURS[mode]},
            "hovertemplate": "%{y}: %{text} " + mode,
        }
        for mode in reversed(FAILURE_MODES)
    ]
    return {
        "data": data,
        "layout": stacked_bars(len(rows), "% of kernels", barnorm="percent"),
    }


def chances(rows: Sequence[Chances], p: float, order: Sequence[str] = ()) -> Spec:
    """Draw per cent of problems over k. Solid: correct. Dashed: correct and faster than p. Both of
    a row in its colour, both dotted if published, where open points are the fast ones."""
    each = zip(rows, styles([row.model for row in rows], order), strict=True)
    return {
        "data": [line for row, style in each for line in _lines(row, style, p)],
        "layout": {
            "xaxis": {"title": {"text": "k, samples a problem"}, "dtick": 1},
            "yaxis": {"title": {"text": "% of problems"}, "rangemode": "tozero"},
            "showlegend": True,
            "hovermode": "closest",
        },
    }


def _lines(row: Chances, style: Style, p: float) -> list[Spec]:
    name = label(row.name)
    drawn = [(name, row.passing, "solid", ""), (f"{name}, over {p:g}×", row.fast, "dash", "-open")]
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": own,
            "legendgroup": name,
            "showlegend": own == name,
            "x": list(row.samples),
            "y": [None if share is None else round(100 * share, 3) for share in shares],
            "line": {
                "color": style.colour,
                "width": 1.5 if row.published else 2.25,
                "dash": "dot" if row.published else dash,
            },
            "marker": {"symbol": style.symbol + (is_open if row.published else ""), "size": 7},
            "hovertemplate": "k = %{x}: %{y:.1f} %",
        }
        for own, shares, dash, is_open in drawn
        if shares
    ]


def spreads(rows: Sequence[Spread], order: Sequence[str] = ()) -> Spec:
    """Draw a box of speedups for each row, with a point for each problem; log axis."""
    looks = styles([row.model for row in rows], order)
    names = labels([row.name for row in rows])
    data = [
        {
            "type": "box",
            "orientation": "h",
            "name": name,
            "x": [significant(speedup) for speedup in row.speedups],
            "text": [label(problem) for problem in row.problems],
            "boxpoints": "all",
            "jitter": 0.5,
            "pointpos": 0,
            "marker": {"color": style.colour, "size": 5, "opacity": 0.7},
            "line": {"width": 1.25},
            "fillcolor": "rgba(0,0,0,0)",
            "hovertemplate": "%{text}: %{x}×",
        }
        for row, name, style in zip(rows, names, looks, strict=True)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": speedup_axis(speedup for row in rows for speedup in row.speedups),
            "yaxis": {"autorange": "reversed", "automargin": True},
            "height": max(350, 52 * len(rows) + 100),
            "shapes": [line_at(x=1.0)],
            "showlegend": False,
        },
    }


def utilisations(
    rows: Sequence[ByCategory], categories: Sequence[str], order: Sequence[str] = ()
) -> Spec:
    """Draw a point for each row and category, in per cent of the roofline."""
    looks = styles([row.model for row in rows], order)
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": label(row.name),
            "x": [None if value is None else round(100 * value, 2) for value in row.values],
            "y": [label(category) for category in categories],
            "marker": {"color": style.colour, "symbol": style.symbol, "size": 9},
            "hovertemplate": "%{y}: %{x:.1f} %",
        }
        for row, style in zip(rows, looks, strict=True)
    ]
    return {
        "data": data,
        "layout": {
            "xaxis": {
                "title": {"text": "median % of the roofline"},
                "rangemode": "tozero",
            },
            "yaxis": {"autorange": "reversed", "automargin": True, "dtick": 1},
            "showlegend": True,
            "height": height_px(len(categories)),
        },
    }
