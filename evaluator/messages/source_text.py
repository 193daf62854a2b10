"""Reads the text of a submission: Python that may hold C++ and CUDA, and need not parse."""

from __future__ import annotations

import re

_BEFORE_DOCSTRING = r"(?:\A(?:\s*#[^\n]*\n)*|:[ \t]*(?:#[^\n]*)?\n)\s*[rRuU]?"
_DOCSTRING = rf"{_BEFORE_DOCSTRING}(?P<quotes>\"\"\"|''')[\s\S]*?(?:(?P=quotes)|\Z)"
_TEXT = r"(?P<text>\"\"\"[\s\S]*?(?:\"\"\"|\Z)|'''[\s\S]*?(?:'''|\Z))"
_LINE = r"\"(?:\\[\s\S]|[^\"\\\n])*\"?|'(?:\\[\s\S]|[^'\\\n])*'?"
# Whatever a quote begins also ends where there is no second one: no text makes this look twice.
_PYTHON = re.compile(rf"(?P<docstring>{_DOCSTRING})|(?P<comment>#[^\n]*)|{_TEXT}|{_LINE}")
_C_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)")


def without_comments(source: str) -> str:
    """Return Python without comments and docstrings; triple-quoted text also without C's comments.

    Lines keep their numbers. It need not parse, and takes time linear in its length.
    """
    return _PYTHON.sub(_kept, source)


def _kept(match: re.Match[str]) -> str:
    if match["text"] is not None:
        return _C_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), match["text"])
    if match["comment"] is None and match["docstring"] is None:
        return match[0]
    return "\n" * match[0].count("\n")
