"""Finds kernels and calls in what a model wrote. Its text is hostile: it is parsed, never run."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from evaluator.generate.exchange import ToolCall
from evaluator.messages.entry import UNREADABLE, has_entry, parsed

MAX_SOURCE_BYTES = 256 << 10  # what a site takes
MOST_BLOCKS = 64  # the last ones: an answer has fewer
MAX_CALLS = 16
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[^\s`~]*)[^\n`]*$", re.MULTILINE)
_STARTS_LIKE_CODE = re.compile(r"\A\s*(?:#|import\s|from\s|\"\"\"|'''|def\s|@)")
_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"
_CALL, _CALL_ENDS = "<tool_call>", "</tool_call>"
_FUNCTION, _PARAMETER = "<function=", "<parameter="


def find_kernel(text: str, *, is_cut: bool = False) -> str | None:
    """Return the longest fenced block that parses as Python and defines `solution`, whatever its
    tag; else the last closed block that names it; else all of the text if it is code without a
    fence. Return None if there is none. Thoughts in `<think>` are no answer, nor is an open block
    of a text that was cut off."""
    text = _spoken(text)
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


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """Return the calls that stand in a text as `<tool_call>`, because its server does not read
    them: as a JSON object, or as Qwen's `<function=name><parameter=name>`."""
    bodies = [part.partition(_CALL_ENDS)[0].strip() for part in _spoken(text).split(_CALL)[1:]]
    found = [_marked_call(each) or _json_call(each) for each in bodies[:MAX_CALLS]]
    return tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(filter(None, found))
    )


def fault_of(source: str) -> str | None:
    """Return why a text cannot be a kernel's source; None where it may be one."""
    if not source.strip():
        return "it is empty"
    if "\0" in source:
        return "it holds a NUL character"
    if len(source.encode()) > MAX_SOURCE_BYTES:
        return f"it is longer than {MAX_SOURCE_BYTES >> 10} KiB"
    return None


def _spoken(text: str) -> str:
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


def _json_call(body: str) -> tuple[str, str] | None:
    try:
        told: Any = json.loads(body)
        name, given = told["name"], told.get("arguments", {})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(name, str):
        return None
    return name, given if isinstance(given, str) else json.dumps(given)


def _marked_call(body: str) -> tuple[str, str] | None:
    if not body.startswith(_FUNCTION):
        return None
    name, _, rest = body.removeprefix(_FUNCTION).partition(">")
    given = {}
    for part in rest.partition("</function>")[0].split(_PARAMETER)[1:]:
        key, _, value = part.partition(">")
        given[key] = value.partition("</parameter>")[0].removeprefix("\n").removesuffix("\n")
    return name, json.dumps(given)
