"""Puts together an answer that a server sends in pieces, as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

WANTED = {"stream": True, "stream_options": {"include_usage": True}}
# The fields in which servers send what a model wrote before its answer.
REASONING = ("reasoning_content", "reasoning")
_TEXTS = ("content", "refusal", *REASONING)
_THOUGHT = "thinking"


def document_of(body: bytes) -> Any:
    """Return the chat completion that a body holds, whole or in pieces. Raises ValueError where it
    is none, or was cut off, and what reading something else raises."""
    if not body.lstrip().startswith((b"data:", b"event:", b":")):
        return json.loads(body)
    return _summed(_events(body))


def said(content: Any) -> tuple[str, str]:
    """Return the text and the thoughts of a content: a text, or a list of parts as Mistral's."""
    if not isinstance(content, list):
        return content or "", ""
    parts = [part if isinstance(part, dict) else {"text": part} for part in content]
    text = "".join(part.get("text") or "" for part in parts)
    thoughts = [part[_THOUGHT] for part in parts if part.get(_THOUGHT)]
    return text, "".join(one if isinstance(one, str) else said(one)[0] for one in thoughts)


def _events(body: bytes) -> Iterator[Any]:
    for line in body.splitlines():
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)


def _summed(events: Iterable[Any]) -> dict[str, Any]:
    """Return the document that would have come whole: of the first choice, as that alone is
    asked for."""
    told: dict[str, Any] = {}
    texts: dict[str, list[str]] = {name: [] for name in (*_TEXTS, _THOUGHT)}
    calls: dict[int, dict[str, list[str]]] = {}
    for event in events:
        if "error" in event:
            raise ValueError("the server gave up")
        told |= {name: event[name] for name in ("model", "usage") if event.get(name)}
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            text, thought = said(delta.get("content"))
            pieces = {**delta, "content": text, _THOUGHT: thought}
            for name, parts in texts.items():
                parts.append(pieces.get(name) or "")
            for call in delta.get("tool_calls") or []:
                _add(calls, call)
            if choice.get("finish_reason"):
                told["finish_reason"] = choice["finish_reason"]
    if "finish_reason" not in told:
        raise ValueError("the answer was cut off")
    message: dict[str, Any] = {name: "".join(parts) for name, parts in texts.items()}
    if thought := message.pop(_THOUGHT):
        message["content"] = [{_THOUGHT: thought}, {"text": message["content"]}]
    message["tool_calls"] = [_call(calls[index]) for index in sorted(calls)]
    return {**told, "choices": [{"message": message, "finish_reason": told["finish_reason"]}]}


def _add(calls: dict[int, dict[str, list[str]]], piece: Any) -> None:
    """Add a piece of a call to that with its index; its id comes with the first."""
    index = int(piece.get("index") or 0)
    own = calls.setdefault(index, {"id": [], "name": [], "arguments": []})
    function = piece.get("function") or {}
    own["id"].append(piece.get("id") or "")
    for name in ("name", "arguments"):
        own[name].append(function.get(name) or "")


def _call(own: dict[str, list[str]]) -> dict[str, Any]:
    identity = next(filter(None, own["id"]), "")
    function = {name: "".join(own[name]) for name in ("name", "arguments")}
    return {"id": identity, "function": function}
