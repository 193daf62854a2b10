"""Renders sources as HTML. Used by pages of kernels and problems."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer

from leaderboard.kit.visible import visible

# Colouring costs about 15 us a character at worst; real kernels have under 20,000.
MOST_COLOURED = 64_000

Marks = Mapping[int, Sequence[str]]


def highlighted(source: str, marks: Marks | None = None) -> SafeString:
    """Return a Python source as HTML with a line number and an anchor `L-12` for every line.

    A source too long to colour quickly is shown plain. Lines in `marks` carry what is said of them.
    """
    text = visible(source)
    lexer = PythonLexer if len(text) <= MOST_COLOURED else TextLexer
    made = highlight(text, lexer(stripnl=False), _formatter())
    return mark_safe(_marked(made, marks) if marks else made)


@functools.cache
def _formatter() -> HtmlFormatter[str]:
    """Make the formatter, with its style sheet, once. It keeps nothing of what it formats."""
    return HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)


def _marked(made: str, marks: Marks) -> str:
    """Return the lines of `made` with their marks. Each line of a source is one line of it, and no
    element reaches over its end; the last two close the whole."""
    lines = made.split("\n")
    for number, said in marks.items():
        if 0 < number <= len(lines) - 2:
            tags = format_html_join("", "<mark>◂ {}</mark>", [(visible(text),) for text in said])
            lines[number - 1] += tags
    return "\n".join(lines)
