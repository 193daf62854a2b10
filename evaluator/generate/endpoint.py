"""Speaks to a server of chat completions with the `openai` package, which nothing else imports."""

from __future__ import annotations

import json
import time
from typing import Any

import openai

from evaluator.generate import streamed
from evaluator.generate.exchange import (
    Ask,
    Failed,
    Message,
    Misconfigured,
    Rejected,
    Reply,
    Tool,
    ToolCall,
    Unanswered,
    Usage,
)

MAX_BODY_BYTES = 4 << 20  # some ten times the longest answer that a model gives
MAX_STREAM_BYTES = 64 << 20  # each token comes in a document of its own
MAX_CALLS = 16


class OpenAIEndpoint:
    """Asks one server. The package's own retries are off: each try is recorded, and paid. Where it
    streams, a proxy on the way that cuts silent connections has nothing to cut."""

    def __init__(self, *, base_url: str | None, api_key: str, is_streamed: bool = False) -> None:
        self._more = streamed.WANTED if is_streamed else {}
        self._most_bytes = MAX_STREAM_BYTES if is_streamed else MAX_BODY_BYTES
        self._client = openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
        # Servers of others know the older name, OpenAI's newest models only the newer one.
        self._limit_name = "max_tokens" if base_url else "max_completion_tokens"

    def complete(self, ask: Ask, timeout_s: float) -> Reply:
        """Return the answer; see exchange.Endpoint."""
        began = time.monotonic()
        try:
            body = self._body(ask, timeout_s)
        except openai.APIStatusError as error:
            raise _fault_of(error) from None
        except openai.APIConnectionError as error:  # timeouts too
            raise Unanswered(_one_line(error), may_cost=True) from None
        except openai.OpenAIError as error:
            raise Misconfigured(_one_line(error)) from None
        return _reply(body, wall_s=round(time.monotonic() - began, 3))

    def _body(self, ask: Ask, timeout_s: float) -> bytes:
        """Return what the server answers. Raises Failed where it is longer than any answer."""
        until = time.monotonic() + timeout_s
        call = self._client.chat.completions.with_streaming_response.create
        with call(**self._arguments(ask), timeout=timeout_s) as response:
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
            "tools": [_tool(tool) for tool in ask.tools] or None,
        }
        return {
            "model": ask.model,
            "messages": [_message(message) for message in ask.messages],
            self._limit_name: sampling.max_output_tokens,
            **{name: value for name, value in wanted.items() if value is not None},
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
    }


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
    """Return what a status means for the ask."""
    status, detail = error.status_code, f"HTTP {error.status_code}: {_one_line(error)}"
    if status in (408, 409, 429) or status >= 500:
        wait_s = _seconds(error.response.headers.get("retry-after"))
        return Unanswered(detail, may_cost=status in (502, 504), retry_after_s=wait_s)
    said = f"{error.code} {error}".lower()
    if status in (400, 413, 422) and ("context" in said or "too long" in said or status == 413):
        return Failed("context", detail)
    if status in (400, 422) and any(
        w in said for w in ("content_policy", "content_filter", "safety")
    ):
        return Failed("refused", detail)
    return Misconfigured(detail) if status in (401, 403, 404) else Rejected(detail)


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
        return Reply(
            text=_text(message.get("content")),
            finish=_text(choice.get("finish_reason")) or "unknown",
            model=_text(document.get("model")),
            wall_s=wall_s,
            usage=_usage(document.get("usage")),
            calls=_calls(message.get("tool_calls") or []),
            refusal=_text(message.get("refusal")) or None,
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Unanswered("the answer is no chat completion", may_cost=True) from None


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


def _usage(told: Any) -> Usage | None:
    """Return tokens as the server counts them; None where it does not, or makes no sense."""
    if not isinstance(told, dict):
        return None
    input_details = told.get("prompt_tokens_details") or {}
    output_details = told.get("completion_tokens_details") or {}
    try:
        return Usage(
            input=int(told["prompt_tokens"]),
            cached=int(input_details.get("cached_tokens") or 0),
            output=int(told["completion_tokens"]),
            reasoning=int(output_details.get("reasoning_tokens") or 0),
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _text(value: Any) -> str:
    """Return a text without halves of pairs, which no UTF-8 holds; "" for what is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
