"""Defines the picture that other sites show beside a link to a page."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_BARS, MOST_BARS = 2, 5
# The font that draws cards has letters of English only.
_WRITTEN = str.maketrans({"×": "x", "–": "-", "µ": "u", "’": "'", "\N{NO-BREAK SPACE}": " "})


@dataclass(frozen=True, kw_only=True)
class CardBar:
    """Describes a bar: whose it is, what it says at its end, and its length from 0 to 1."""

    name: str
    value: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Card:
    """Holds a title, a sentence, and at most MOST_BARS bars."""

    title: str
    says: str
    bars: tuple[CardBar, ...] = ()


def bars_of(values: Sequence[tuple[str, float, str]]) -> tuple[CardBar, ...]:
    """Return a bar for each of the first names, values and texts, the largest value as wide as
    there is room; none for a single one, which compares with nothing."""
    shown = values[:MOST_BARS] if len(values) >= LEAST_BARS else ()
    most = max((value for _, value, _ in shown), default=0.0) or 1.0
    return tuple(
        CardBar(name=name, value=text, share=max(0.0, value / most)) for name, value, text in shown
    )


def written(text: str) -> str:
    """Return text in the letters that a card can draw; others become `?`."""
    plain = unicodedata.normalize("NFKD", text.translate(_WRITTEN))
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return "".join(letter if " " <= letter <= "~" else "?" for letter in kept)
