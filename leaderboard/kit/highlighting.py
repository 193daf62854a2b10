"""Renders sources as HTML. Used by pages of kernels and problems."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer, TextLexer, TOMLLexer

from leaderboard.kit.visible import visible

# Colouring costs about 15 us a character at worst; real kernels have under 20,000.
MOST_COLOURED = 64_000
_LEXERS: Mapping[str, type[Lexer]] = {
    ".py": PythonLexer,
    ".toml": TOMLLexer,
}  # all else is C++ and CUDA

Marks = Mapping[int, Sequence[str]]


def highlighted(
    source: str, marks: Marks | None = None, *, suffix: str = ".py", first: int = 1
) -> SafeString:
    """Return a source as HTML with a line number and an anchor `L-12` for every line, from `first`.

    A source too long to colour quickly, or without a suffix, is shown plain. Lines in `marks` carry
    what is said of them.
    """
    text = visible(source)
    is_plain = not suffix or len(text) > MOST_COLOURED
    lexer: type[Lexer] = TextLexer if is_plain else _LEXERS.get(suffix, CudaLexer)
    made = highlight(text, lexer(stripnl=False), _formatter(first))
    own = {number - first + 1: said for number, said in marks.items()} if marks else {}
    return mark_safe(_marked(made, own) if own else made)


@functools.lru_cache(maxsize=16)
def _formatter(first: int) -> HtmlFormatter[str]:
    """Make the formatter, with its style sheet, once. It keeps nothing of what it formats."""
    return HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, linenostart=first)


def _marked(made: str, marks: Marks) -> str:
    """Return the lines of `made` with their marks. Each line of a source is one line of it, and no
    element reaches over its end; the last two close the whole."""
    lines = made.split("\n")
    for number, said in marks.items():
        if 0 < number <= len(lines) - 2:
            tags = format_html_join("", "<mark>◂ {}</mark>", [(visible(text),) for text in said])
            lines[number - 1] += tags
    return "\n".join(lines)
