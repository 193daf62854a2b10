"""Gives all figures the same colours, labels and numbers.

Names come from submitters, and Plotly reads a little HTML in labels, so every name goes through
`label`.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from leaderboard.kit.visible import visible

Spec = dict[str, Any]

# Okabe and Ito's palette without its yellow and black, which vanish on light or dark paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross")
KERNEL_COLOUR, BASELINE_COLOUR = COLOURS[0], COLOURS[1]
LABEL_LENGTH = 48
# What tells rows of one model apart, and of how many they are, at the end of a name.
_TELLING = re.compile(r"(?: \([^()]{1,30}\))?(?:, (?:n = \d{1,6}|\d{1,3} of \d{1,3} judged))?$")
LEAST_OF_NAME = 24  # beside that
MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
# As close as a narrow screen has room for, over so wide a range.
CLOSE_MARKS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5)
CLOSE = 2.5


def height_px(rows: int) -> int:
    """Return a height with room for a label on every row."""
    return max(350, 18 * rows + 90)


def stacked_bars(rows: int, title: str, **more: Any) -> Spec:
    """Return the layout of one bar a row, parted, the first row on top."""
    return {
        "barmode": "stack",
        "xaxis": {"title": {"text": title}},
        "yaxis": {"autorange": "reversed", "automargin": True, "dtick": 1},
        "height": height_px(rows),
        "legend": {"traceorder": "normal"},
        **more,
    }


def label(name: str) -> str:
    """Return a submitter's name as a label: short, escaped, hidden characters written out. Where it
    is cut, what tells it from others at its end stays."""
    name = visible(name)
    end = "".join(_TELLING.findall(name)[:1])
    start = name.removesuffix(end)
    most = max(LABEL_LENGTH - len(end), LEAST_OF_NAME)
    short = start if len(start) <= most else f"{start[: most - 1]}…"
    return html.escape(short + end, quote=False)


def labels(names: Sequence[str]) -> list[str]:
    """Return a distinct label for each name (`a`, `a, 2`), because Plotly draws what has one name
    on an axis in one place."""
    made: dict[str, None] = {}
    for name in names:
        own, nth = label(name), 1
        while own in made:
            nth += 1
            own = f"{label(name)}, {nth}"
        made[own] = None
    return list(made)


def significant(number: float) -> float:
    """Round to four significant digits: more is noise and weight."""
    return float(f"{number:.4g}")


def marker(nth: int) -> Spec:
    """Return the marker of the nth series, which differs in colour and in shape."""
    return {
        "color": COLOURS[nth % len(COLOURS)],
        "symbol": SYMBOLS[nth % len(SYMBOLS)],
        "size": 7,
    }


def line_at(*, x: float | None = None, y: float | None = None) -> Spec:
    """Draw a dotted line across the plot at a value that means something."""
    across = (
        {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
        if x is not None
        else {"y0": y, "y1": y, "x0": 0, "x1": 1, "xref": "paper"}
    )
    return {"type": "line", "line": {"width": 1, "dash": "dot", "color": "#8C8C8C"}, **across}


def speedup_axis(speedups: Iterable[float], title: str = "speedup, ×") -> Spec:
    """Return a logarithmic axis with all of these and 1 on it, and ticks wherever they lie."""
    known = [1.0, *speedups]
    low, high = min(known), max(known)
    marks = CLOSE_MARKS if high / low <= CLOSE else MARKS
    room = max(0.06 * math.log10(high / low), 0.02)
    return {
        "title": {"text": title},
        "type": "log",
        "tickvals": list(marks),
        "ticktext": [f"{mark:g}" for mark in marks],
        "range": [round(math.log10(low) - room, 4), round(math.log10(high) + room, 4)],
    }
