"""Draws curves of a board: how many kernels are how fast, and what more samples bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.figures.charts.boards import Style, styles
from leaderboard.figures.charts.drawing import Spec, label, line_at

DASHES = ("solid", "longdash", "dashdot")
PUBLISHED = " (published)"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Holds fast_p over thresholds p, shares from 0 to 1, of one row. A published one is dotted: it
    was counted at the thresholds `counted`, and read off a plot at the others, whose points are
    open. A point leads to `link`.

    Curves of one model share its colour.
    """

    model: str
    name: str
    thresholds: tuple[float, ...]
    shares: tuple[float | None, ...]
    published: bool = False
    counted: frozenset[float] = frozenset()
    link: str = ""

    @property
    def origin(self) -> str:
        """Return the words to put behind its name."""
        return PUBLISHED if self.published else ""

    def symbols(self, symbol: str) -> str | list[str]:
        if not self.published:
            return symbol
        return [symbol + ("" if p in self.counted else "-open") for p in self.thresholds]

    @property
    def found(self) -> list[str]:
        """Return how each of its shares is known, in words."""
        if not self.published:
            return ["judged here"] * len(self.thresholds)
        return ["counted" if p in self.counted else "read off a plot" for p in self.thresholds]


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
            "marker": {"symbol": curve.symbols(style.symbol), "size": 7},
            "text": curve.found,
            "meta": label(curve.model),
            "customdata": [curve.link] * len(curve.thresholds) if curve.link else [],
            "hovertemplate": "p = %{x}: %{y:.1f} %, %{text}",
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
            "meta": label(row.model),
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
