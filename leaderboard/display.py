"""Sources as HTML."""

from __future__ import annotations

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer

from leaderboard.visible import visible

# Colouring costs about 15 us a character at worst; real kernels have under 20,000.
MOST_COLOURED = 64_000


def highlighted(source: str) -> SafeString:
    """A Python source with a line number and an anchor `L-12` for every line.

    A source too long to colour quickly is shown plain.
    """
    text = visible(source)
    lexer = PythonLexer if len(text) <= MOST_COLOURED else TextLexer
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
    return mark_safe(highlight(text, lexer(stripnl=False), formatter))
