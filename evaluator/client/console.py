"""Writes for people and for programs; nothing that a site says can steer a terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

# Control characters, marks that are drawn as nothing or reorder a line, and what ends a line.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def plain(text: object) -> str:
    """Return a text with control and hidden characters written out, as in `[U+001B]`."""
    lines = str(text).replace("\r\n", "\n")
    if lines.isascii() and lines.replace("\n", "").replace("\t", "").isprintable():
        return lines
    return "".join(_shown(char) for char in lines)


def _shown(char: str) -> str:
    is_hidden = char not in "\n\t" and unicodedata.category(char) in _HIDDEN
    return f"[U+{ord(char):04X}]" if is_hidden else char


def say(text: object = "") -> None:
    """Print a text on standard output."""
    print(plain(text), flush=True)


def note(text: object) -> None:
    """Print what is not the answer on standard error."""
    print(plain(text), file=sys.stderr, flush=True)


def say_json(value: Any) -> None:
    """Print a value as JSON in ASCII."""
    print(json.dumps(value, indent=1).replace("\x7f", "\\u007f"), flush=True)


def say_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns, numbers to the right, empty cells as a dash."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells)]
    for line in (heads, *cells):
        say("  ".join(_fitted(cell, width) for cell, width in zip(line, widths)).rstrip())


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return "-" if value in (None, "") else plain(value).replace("\n", " ").replace("\t", " ")


def _fitted(cell: str, width: int) -> str:
    is_number = cell.replace(".", "", 1).replace("-", "", 1).isdigit()
    return cell.rjust(width) if is_number else cell.ljust(width)
