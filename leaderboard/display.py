"""Sources as HTML."""

from __future__ import annotations

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from leaderboard.visible import visible


def highlighted(source: str) -> SafeString:
    """A Python source as HTML with a line number and an anchor `L-12` for every line."""
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
    return mark_safe(highlight(visible(source), PythonLexer(stripnl=False), formatter))
