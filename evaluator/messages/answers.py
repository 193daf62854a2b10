"""Finds the kernel in what a model wrote. Its text is hostile: it is parsed, never run.

The client has this module too, so it runs on Python 3.9.
"""

from __future__ import annotations

import re
import textwrap

from .entry import UNREADABLE, has_entry, parsed

MAX_SOURCE_BYTES = 256 << 10  # what a site takes
MOST_BLOCKS = 64  # the last ones: an answer has fewer
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[^\s`~]*)[^\n`]*$", re.MULTILINE)
_STARTS_LIKE_CODE = re.compile(r"\A\s*(?:#|import\s|from\s|\"\"\"|'''|def\s|@)")
_HALF = re.compile(r"[\ud800-\udfff]")
_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"


def find_kernel(text: str, *, is_cut: bool = False) -> str | None:
    """Return the longest fenced block that parses as Python and defines `solution`, whatever its
    tag; else the last closed block that names it; else all of the text if it is code without a
    fence. Return None if there is none. Thoughts in `<think>` are no answer, nor is an open block
    of a text that was cut off."""
    text = spoken(text)
    blocks = _blocks(text)
    if not blocks and "```" not in text and _STARTS_LIKE_CODE.match(text):
        blocks = [(text, False)]
    named = [
        (block, is_closed)
        for block, is_closed in blocks[-MOST_BLOCKS:]
        if (is_closed or not is_cut) and fault_of(block) is None and has_entry(block)
    ]
    whole = [block for block, _ in named if _parses(block)]
    closed = [block for block, is_closed in named if is_closed]
    return max(whole, key=len) if whole else closed[-1] if closed else None


def fault_of(source: str) -> str | None:
    """Return why a text cannot be a kernel's source; None where it may be one."""
    if not source.strip():
        return "it is empty"
    if "\0" in source:
        return "it holds a NUL character"
    if _HALF.search(source):
        return "it holds half of a surrogate pair"
    if len(source.encode()) > MAX_SOURCE_BYTES:
        return f"it is longer than {MAX_SOURCE_BYTES >> 10} KiB"
    return None


def spoken(text: str) -> str:
    """Return a text without the thoughts before it; "" if it ends within them."""
    before, _, after = text.rpartition(_THOUGHT_ENDS)
    if before:
        return after
    return "" if text.lstrip().startswith(_THOUGHT) else text


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Return the fenced blocks without their indentation, each with True if its end is there."""
    blocks = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif not fence["tag"] and fence["fence"].startswith(opened["fence"]):
            blocks.append((textwrap.dedent(text[opened.end() + 1 : fence.start()]), True))
            opened = None
    if opened is not None:
        blocks.append((textwrap.dedent(text[opened.end() + 1 :]), False))
    return blocks


def _parses(source: str) -> bool:
    try:
        parsed(source)
    except UNREADABLE:
        return False
    return True
