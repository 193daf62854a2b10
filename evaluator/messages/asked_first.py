"""Finds whether code asks for a feature before it uses it, and goes another way without."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

# Between `if` and what it asks: no end of the condition.
_IF = r"(?:\b(?:if|elif|bool)\b|#\s*ifn?def\b)(?:(?!\)\s*(?:\{|\w+\s*\()|[:;]|\belse\b).){0,100}?"
_IS_NONE = r"[\w.]{0,40}\)?\s*(?:[!=]=|>|\bis(?:\s+not)?\b)\s*(?:0|None|nullptr)\b"
_DEMAND = re.compile(r"\b(?:raise|assert|throw|abort|exit|TORCH_CHECK\w*|static_assert)\b")
_ASSIGNED = re.compile(r"^\s*([\w.]{1,99})\s*(?::\s*[\w.]{1,99}\s*)?=(?!=)[^=]*$")
_MOST_ALIASES = 16
_LINE_CHARS = 200
_BLOCK_LINES = 4


def lines_of(code: str) -> list[str]:
    """Return the lines, each with what an honest one has: sources are hostile."""
    return [line[:_LINE_CHARS] for line in code.split("\n")]


def with_aliases(lines: list[str], asks: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern that also finds the names that hold an answer."""
    names = {
        name[1].rpartition(".")[2]
        for line in lines
        if (asked := asks.search(line)) and (name := _ASSIGNED.search(line[: asked.start()]))
    }
    aliases = [rf"\b{re.escape(name)}\b" for name in sorted(names)[:_MOST_ALIASES] if name]
    return re.compile("|".join([asks.pattern, *aliases]))


def goes_another_way(lines: list[str], asks: re.Pattern[str]) -> bool:
    """Return True if a condition asks, and does not merely demand."""
    condition = re.compile(rf"{_IF}(?:{asks.pattern})|(?:{asks.pattern}){_IS_NONE}")
    return any(
        asks.search(line) and condition.search(line) and not _demands(lines, at)
        for at, line in enumerate(lines)
    )


def _demands(lines: list[str], at: int) -> bool:
    """Return True if a line, or the first lines of its block, give up."""
    following = [line for line in lines[at + 1 : at + 1 + 2 * _BLOCK_LINES] if line.strip()]
    block = itertools.takewhile(lambda line: _indent(line) > _indent(lines[at]), following)
    return any(_DEMAND.search(line) for line in [lines[at], *list(block)[:_BLOCK_LINES]])


def is_tried(lines: list[str], shows: re.Pattern[str]) -> bool:
    """Return True if some use stands in a `try` whose `except` goes on without it."""
    tries: list[_Try] = []
    for at, line in enumerate(lines):
        text, indent = line.strip(), _indent(line)
        while text and tries and indent <= tries[-1].indent:
            ended = tries.pop()
            if ended.has_use and text.startswith("except") and not _demands(lines, at):
                return True
            if tries:
                tries[-1].has_use |= ended.has_use
        if tries and shows.search(line):
            tries[-1].has_use = True
        if text == "try:":
            tries.append(_Try(indent=indent))
    return False


@dataclass(kw_only=True)
class _Try:
    indent: int
    has_use: bool = False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
