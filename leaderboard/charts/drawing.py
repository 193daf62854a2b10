"""What all figures share: colours, labels, numbers.

Names come from submitters, and Plotly reads a little HTML in labels, so every name goes through
`label`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from leaderboard.visible import visible

Spec = dict[str, Any]

# Okabe and Ito's palette without its yellow and black, which vanish on light or dark paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross")
KERNEL_COLOUR, BASELINE_COLOUR = COLOURS[0], COLOURS[1]
LABEL_LENGTH = 48


def height_px(rows: int) -> int:
    """Room for a label on every row."""
    return max(350, 18 * rows + 90)


def label(name: str) -> str:
    name = visible(name)
    short = name if len(name) <= LABEL_LENGTH else name[: LABEL_LENGTH - 1] + "…"
    return html.escape(short, quote=False)


def labels(names: Sequence[str]) -> list[str]:
    """Each once, as Plotly draws what has one name on an axis in one place: `a`, `a, 2`."""
    made: dict[str, None] = {}
    for name in names:
        own, nth = label(name), 1
        while own in made:
            nth += 1
            own = f"{label(name)}, {nth}"
        made[own] = None
    return list(made)


def significant(number: float) -> float:
    """Four significant digits: more is noise and weight."""
    return float(f"{number:.4g}")


def marker(nth: int) -> Spec:
    """That of the nth series, told apart by colour and by shape."""
    return {
        "color": COLOURS[nth % len(COLOURS)],
        "symbol": SYMBOLS[nth % len(SYMBOLS)],
        "size": 7,
    }


def line_at(*, x: float | None = None, y: float | None = None) -> Spec:
    """A dotted line across the plot at a value that means something."""
    across = (
        {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
        if x is not None
        else {"y0": y, "y1": y, "x0": 0, "x1": 1, "xref": "paper"}
    )
    return {"type": "line", "line": {"width": 1, "dash": "dot", "color": "#8C8C8C"}, **across}
