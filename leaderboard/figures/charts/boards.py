"""Draws how rows of a board compare: curves over p and k, speedups, utilisation, failure modes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.drawing import (
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


@dataclass(frozen=True, kw_only=True)
class ModeCounts:
    """Counts kernels of a row by failure mode; its bar leads to `link`."""

    name: str
    counts: Mapping[str, int]
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Holds the speedup of the fastest correct kernel of each problem that a row solved, what is
    said of each, and where its point leads."""

    model: str
    name: str
    problems: tuple[str, ...]
    speedups: tuple[float, ...]
    links: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ByCategory:
    """Holds a share from 0 to 1, or None, for each category, and of how many problems it is. Its
    points lead to `link`."""

    model: str
    name: str
    values: tuple[float | None, ...]
    counts: tuple[int, ...] = ()
    link: str = ""


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


def failure_modes(rows: Sequence[ModeCounts]) -> Spec:
    """Draw the kernels of each row as one bar, parted by failure mode, in per cent."""
    names = labels([f"{row.name}, n = {sum(row.counts.values())}" for row in rows])
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": mode,
            "y": names,
            "x": [row.counts.get(mode, 0) for row in rows],
            "text": [str(row.counts.get(mode, 0)) for row in rows],
            "textposition": "none",
            "customdata": [row.link for row in rows],
            "marker": {"color": MODE_COLOURS[mode]},
            "hovertemplate": "%{y}: %{text} " + mode,
        }
        for mode in reversed(FAILURE_MODES)
    ]
    return {
        "data": data,
        "layout": stacked_bars(len(rows), "% of kernels", barnorm="percent"),
    }


def spreads(rows: Sequence[Spread], order: Sequence[str] = (), colour: str = "") -> Spec:
    """Draw a box of speedups for each row, with a point for each problem; log axis. Rows that are
    no models' have one `colour`."""
    looks = styles([row.model for row in rows], order)
    names = labels([f"{row.name}, n = {len(row.speedups)}" for row in rows])
    data = [
        {
            "type": "box",
            "orientation": "h",
            "name": name,
            "x": [significant(speedup) for speedup in row.speedups],
            "text": [label(problem) for problem in row.problems],
            "meta": label(row.model),
            "customdata": list(row.links),
            "boxpoints": "all",
            "jitter": 0.5,
            "pointpos": 0,
            "marker": {"color": colour or style.colour, "size": 5, "opacity": 0.7},
            "line": {"width": 1.25},
            "fillcolor": "rgba(0,0,0,0)",
            "hovertemplate": "%{text}",
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
            "text": [f"median of {n}" for n in row.counts],
            "meta": label(row.model),
            "customdata": [row.link] * len(row.values),
            "hovertemplate": "%{y}: %{x:.1f} %, %{text}",
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
