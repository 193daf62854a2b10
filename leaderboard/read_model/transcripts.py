"""Reads transcripts: who said what in an attempt, in parts that fit a page. All of it is written by
models and by whoever uploads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.kit.visible import without_ansi

PART_CHARS = 64 << 10
# What a message weighs besides its text, so that a part has no thousands of empty ones.
MESSAGE_CHARS = 64
MAX_ROLE = 40
UNKNOWN = "line"
REASONING = ("reasoning", "reasoning_content")


@dataclass(frozen=True, kw_only=True)
class Message:
    """Holds what `role` said, or the next part of it where that is too long for one page."""

    role: str
    text: str
    continued: bool = False


def parts_of(transcript: str) -> list[list[Message]]:
    """Return the messages of JSON lines, of at most PART_CHARS together in each part."""
    parts: list[list[Message]] = [[]]
    left = PART_CHARS
    lines = filter(str.strip, transcript.split("\n"))
    for message in _short(message for line in lines for message in _messages(line)):
        weight = len(message.text) + MESSAGE_CHARS
        if weight > left and parts[-1]:
            parts.append([])
            left = PART_CHARS
        parts[-1].append(message)
        left -= weight
    return parts


def _short(messages: Iterable[Message]) -> Iterator[Message]:
    most = PART_CHARS - MESSAGE_CHARS
    for message in messages:
        for start in range(0, max(1, len(message.text)), most):
            text = message.text[start : start + most]
            yield Message(role=message.role, text=text, continued=start > 0)


def _messages(line: str) -> Iterator[Message]:
    """Yield a message in the shape of our own harness or of chat completions, what the model
    reasoned first; a line in any other shape as it stands."""
    try:
        found = _told(json.loads(line))
    except (ValueError, RecursionError):
        found = None
    role, thought, text = found or (UNKNOWN, "", line)
    role = _written(role)[:MAX_ROLE]
    if thought:
        yield Message(role=f"{role}, reasoning", text=_written(thought))
    if text or not thought:
        yield Message(role=role, text=_written(text or line))


def _told(value: Any) -> tuple[str, str, str] | None:
    """Return who reasoned and said what; no text where the message holds something else."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return None
    thoughts = [part for name in REASONING for part in _texts(_text_of(value.get(name)))]
    said = [*_texts(value.get("text")), *_texts(value.get("content")), *_calls(value)]
    return value["role"], "\n\n".join(thoughts), "\n\n".join(said)


def _text_of(value: Any) -> Any:
    """Return the text of a reasoning as our own harness keeps it, anything else as it is."""
    return value.get("text") if isinstance(value, dict) else value


def _written(text: str) -> str:
    """Return a text without commands to a terminal, and with nothing that UTF-8 cannot write."""
    return without_ansi(text.encode(errors="replace").decode())


def _texts(value: Any) -> list[str]:
    """Return a text, or those of a list of parts."""
    if isinstance(value, str):
        return [value] if value else []
    parts: Sequence[Any] = value if isinstance(value, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return [text for text in texts if isinstance(text, str)]


def _calls(value: dict[str, Any]) -> Iterator[str]:
    """Yield the calls of tools, each by its name with what it was called with."""
    for name in ("calls", "tool_calls"):
        found = value.get(name)
        for call in found if isinstance(found, list) else ():
            own = call.get("function", call) if isinstance(call, dict) else None
            yield _call(own) if isinstance(own, dict) else json.dumps(call)


def _call(own: dict[str, Any]) -> str:
    given = own.get("arguments")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return f"→ {own.get('name')}\n{given}"
    lines = given.items() if isinstance(given, dict) else [("arguments", given)]
    shown = [f"{name}: {one if isinstance(one, str) else json.dumps(one)}" for name, one in lines]
    return "\n".join([f"→ {own.get('name')}", *shown])
