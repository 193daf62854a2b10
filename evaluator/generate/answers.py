"""Finds the calls of tools that stand in what a model wrote. Its text is hostile: it is parsed,
never run."""

from __future__ import annotations

import json
from typing import Any

from evaluator.generate.exchange import ToolCall
from evaluator.messages.answers import spoken

MAX_CALLS = 16
_CALL, _CALL_ENDS = "<tool_call>", "</tool_call>"
_FUNCTION, _PARAMETER = "<function=", "<parameter="


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """Return the calls that stand in a text as `<tool_call>`, because its server does not read
    them: as a JSON object, or as Qwen's `<function=name><parameter=name>`."""
    bodies = [part.partition(_CALL_ENDS)[0].strip() for part in spoken(text).split(_CALL)[1:]]
    found = [_marked_call(each) or _json_call(each) for each in bodies[:MAX_CALLS]]
    return tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(filter(None, found))
    )


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
