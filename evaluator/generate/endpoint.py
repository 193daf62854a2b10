"""Speaks to a server of chat completions with the `openai` package, which nothing else imports."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import openai

from evaluator.generate import statuses, streamed
from evaluator.generate.exchange import (
    Ask,
    Failed,
    Message,
    Misconfigured,
    Reasoning,
    Reply,
    Tool,
    ToolCall,
    Unanswered,
)
from evaluator.generate.usage import usage_of
from evaluator.generate.written_calls import MAX_CALLS

MAX_BODY_BYTES = 4 << 20  # some ten times the longest answer that a model gives
MAX_STREAM_BYTES = 64 << 20  # each token comes in a document of its own


class OpenAIEndpoint:
    """Asks one server. The package's own retries are off: each try is recorded, and paid. Where it
    streams, a proxy on the way that cuts silent connections has nothing to cut."""

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str,
        is_streamed: bool = False,
        limit_name: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._more = streamed.WANTED if is_streamed else {}
        self._most_bytes = MAX_STREAM_BYTES if is_streamed else MAX_BODY_BYTES
        self._client = openai.OpenAI(
            base_url=base_url, api_key=api_key, max_retries=0, default_headers=headers
        )
        # Servers of others know the older name, OpenAI's newest models only the newer one.
        self._limit_name = limit_name or ("max_tokens" if base_url else "max_completion_tokens")

    def complete(self, ask: Ask, timeout_s: float) -> Reply:
        """Return the answer; see exchange.Endpoint."""
        began = time.monotonic()
        arguments = self._arguments(ask)
        for may_amend in (True, True, False):  # the limit's name, then its number
            try:
                body = self._body(arguments, max(0.01, began + timeout_s - time.monotonic()))
            except openai.APIStatusError as error:
                if not (may_amend and self._amend(arguments, error)):
                    raise _fault_of(error) from None
            except openai.APIConnectionError as error:  # timeouts too
                raise Unanswered(_one_line(error), may_cost=True) from None
            except openai.OpenAIError as error:
                raise Misconfigured(_one_line(error)) from None
            else:
                return _reply(body, wall_s=round(time.monotonic() - began, 3))
        raise AssertionError("the last try returns or raises")

    def _amend(self, arguments: dict[str, Any], error: openai.APIStatusError) -> bool:
        """Change the limit of output as the server's error asks for, by name or number. Return
        False if that is not what is wrong."""
        said = f"{error.code} {error}"
        name = next(each for each in statuses.LIMIT_NAMES if each in arguments)
        if other := statuses.other_limit_name(error.status_code, said, name):
            self._limit_name = other
            arguments[other] = arguments.pop(name)
            return True
        fits = statuses.smaller_limit(error.status_code, said, arguments[name])
        if fits:
            arguments[name] = fits
        return fits is not None

    def _body(self, arguments: dict[str, Any], timeout_s: float) -> bytes:
        """Return what the server answers. Raises Failed where it is longer than any answer."""
        until = time.monotonic() + timeout_s
        call = self._client.chat.completions.with_streaming_response.create
        with call(**arguments, timeout=timeout_s) as response:
            parts, size = [], 0
            try:
                for part in response.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > self._most_bytes:
                        raise _too_long()
                    if time.monotonic() > until:
                        raise Unanswered("the answer took too long", may_cost=True)
            except (Failed, Unanswered, openai.OpenAIError):
                raise
            except Exception as error:  # noqa: BLE001 - a connection that is cut raises what the transport raises
                raise Unanswered(_one_line(error), may_cost=True) from None
        return b"".join(parts)

    def _arguments(self, ask: Ask) -> dict[str, Any]:
        sampling = ask.sampling
        wanted = {
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "reasoning_effort": sampling.reasoning_effort,
            "top_p": sampling.top_p,
            "tools": [_tool(tool) for tool in ask.tools] or None,
        }
        beyond = {"top_k": sampling.top_k, "min_p": sampling.min_p}  # OpenAI's own have neither
        beyond = {name: value for name, value in beyond.items() if value is not None}
        beyond |= json.loads(sampling.extra) if sampling.extra else {}
        return {
            "model": ask.model,
            "messages": [_message(message) for message in ask.messages],
            self._limit_name: sampling.max_output_tokens,
            **{name: value for name, value in wanted.items() if value is not None},
            **({"extra_body": beyond} if beyond else {}),
            **self._more,
        }


def _too_long() -> Failed:
    return Failed("too_long", f"an answer of more than {MAX_BODY_BYTES} bytes")


def _message(message: Message) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _object(call.arguments)},
        }
        for call in message.calls
    ]
    return {
        "role": message.role,
        "content": message.text,
        **({"tool_calls": calls} if calls else {}),
        **({"tool_call_id": message.call_id} if message.call_id is not None else {}),
        **_sent_back(message.reasoning),
    }


def _sent_back(reasoning: Reasoning | None) -> dict[str, str]:
    """Return the field of a reasoning as its server sent it: DeepSeek answers 400 to a turn with
    tools that lacks it."""
    return {reasoning.name: reasoning.text} if reasoning and reasoning.name else {}


def _object(arguments: str) -> str:
    """Return arguments as they were said, if they are a JSON object: servers read them again, and
    take no others. What was wrong with them the call's result says."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _tool(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _fault_of(error: openai.APIStatusError) -> Exception:
    """Return what an error's status means for the ask."""
    status = error.status_code
    detail = f"HTTP {status}: {_one_line(error)}"
    wait_s = _seconds(error.response.headers.get("retry-after"))
    return statuses.fault_of(status, f"{error.code} {error}", detail, wait_s)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None  # a date: then our own waits are as good


def _reply(body: bytes, wall_s: float) -> Reply:
    """Read an answer. Raises Unanswered where it is none."""
    try:
        document = streamed.document_of(body)
        choice = document["choices"][0]
        message = choice["message"]
        if len(json.dumps(message)) > MAX_BODY_BYTES:  # put together of many pieces
            raise _too_long()
        text, thought = streamed.said(message.get("content"))
        return Reply(
            text=_text(text),
            finish=_text(choice.get("finish_reason")) or "unknown",
            model=_text(document.get("model")),
            wall_s=wall_s,
            usage=usage_of(document.get("usage")),
            calls=_calls(message.get("tool_calls") or []),
            refusal=_text(message.get("refusal")) or None,
            reasoning=_reasoning(message, thought),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Unanswered("the answer is no chat completion", may_cost=True) from None


def _reasoning(message: Mapping[str, Any], thought: str) -> Reasoning | None:
    """Return what a model wrote before its answer: in a field of its own, or `thought`, which was a
    part of the content and is not sent back."""
    for name in streamed.REASONING:
        if text := _text(message.get(name)):
            return Reasoning(name=name, text=text)
    return Reasoning(name="", text=_text(thought)) if thought else None


def _calls(told: list[Any]) -> tuple[ToolCall, ...]:
    """Return the first calls, each with an id: some servers give none."""
    return tuple(
        ToolCall(
            id=_text(call.get("id")) or f"call_{number}",
            name=_text(call["function"].get("name")),
            arguments=_text(call["function"].get("arguments")),
        )
        for number, call in enumerate(told[:MAX_CALLS])
    )


def _text(value: Any) -> str:
    """Return a text without halves of pairs, which no UTF-8 holds; "" for what is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
