"""Finds the kernel in what a model wrote. Its text is hostile: it is searched, never run or
parsed."""

from __future__ import annotations

import re

MAX_SOURCE_BYTES = 256 << 10  # what a site takes
_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n]*$", re.MULTILINE
)
_PYTHON = frozenset({"", "python", "py", "python3"})
_DEFINES = re.compile(r"^(?:def[ \t]+solution[ \t]*[(\[]|solution[ \t]*=)", re.MULTILINE)
_STARTS_LIKE_CODE = re.compile(r"\A\s*(?:#|import\s|from\s|\"\"\"|'''|def\s|@)")


def find_kernel(text: str) -> str | None:
    """Return the last whole fenced block that defines `solution`, or all of the text where it is
    code without any fence; None where there is none."""
    blocks = _blocks(text)
    for block in reversed(blocks):
        if _DEFINES.search(block):
            return block
    if not blocks and "```" not in text and _STARTS_LIKE_CODE.match(text) and _DEFINES.search(text):
        return text
    return None


def _blocks(text: str) -> list[str]:
    """Return the blocks of Python, or of no named language, whose end is there."""
    blocks = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif not fence["language"] and fence["fence"].startswith(opened["fence"]):
            if opened["language"].lower() in _PYTHON:
                blocks.append(text[opened.end() + 1 : fence.start()])
            opened = None
    return blocks


def fault_of(source: str) -> str | None:
    """Return why a text cannot be a kernel's source; None where it may be one."""
    if not source.strip():
        return "it is empty"
    if "\0" in source:
        return "it holds a NUL character"
    if len(source.encode()) > MAX_SOURCE_BYTES:
        return f"it is longer than {MAX_SOURCE_BYTES >> 10} KiB"
    return None
