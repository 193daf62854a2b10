"""Cells of a matrix: signs of a closed set, each a link.

As in `cells`, only what cannot carry markup gets in: marks of ours, numbers, and texts that were
escaped before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from django.utils.safestring import SafeString

from leaderboard.cells import Number, ratio_text


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A sign of a closed set: the class that colours it, what is drawn, what it means."""

    code: str
    glyph: str
    words: str


class Target(NamedTuple):
    """Where a marked cell leads, and its name: both escaped. One with `edge` begins a group."""

    href: SafeString
    label: SafeString
    edge: bool = False


def marked_cell(mark: Mark, to: Target, number: Number, *, in_digits: bool) -> SafeString:
    """A cell of a matrix: a link that is one sign, or in digits the number where there is one."""
    if not isinstance(to.href, SafeString) or not isinstance(to.label, SafeString):
        raise TypeError("an address and a label are escaped before they come here")
    ratio = ratio_text(number)
    said = mark.words if number is None else f"right, {ratio}"
    drawn = mark.glyph if number is None or not in_digits else ratio.removesuffix("×")
    edge = " g" if to.edge else ""
    link = f'<a href="{to.href}" title="{to.label}: {said}">{drawn}</a>'
    return SafeString(f'<td class="{mark.code}{edge}">{link}</td>')


def unmarked_cell(*, edge: bool = False) -> SafeString:
    return SafeString('<td class="o g">·</td>' if edge else '<td class="o">·</td>')
