"""Defines what goes to a language model and what comes back, as values with digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evaluator.messages.codec import encode


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """Holds a call that a model asked for; `arguments` is its own text, which need not be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Reasoning:
    """Holds what a model wrote before its answer; `name` is the field that its server uses."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Message:
    """Holds one turn of a conversation; `call_id` names the call that a tool's result answers."""

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    reasoning: Reasoning | None = None


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Describes a tool to a model; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Says how answers are drawn; the server decides what is None. `extra` is a JSON object that is
    added to each request."""

    max_output_tokens: int
    temperature: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    extra: str | None = None


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Holds all that decides what a server is sent, but for its address and the key."""

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling
    tools: tuple[Tool, ...] = ()

    @property
    def digest(self) -> str:
        """Return the SHA-256 of its canonical JSON."""
        return hashlib.sha256(canonical(plain(self)).encode()).hexdigest()

    @property
    def most_input_tokens(self) -> int:
        """Return what its input can at most be: a token stands for a byte or more, and each
        message is framed by a few."""
        framed = [canonical(plain(part)) for part in (*self.messages, *self.tools)]
        return sum(len(text.encode()) + 16 for text in framed)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Counts tokens as a server does: `cached` is a part of `input`, `reasoning` one of
    `output`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def __post_init__(self) -> None:
        parts = (self.input, self.cached, self.output, self.reasoning)
        if min(parts) < 0 or self.cached > self.input or self.reasoning > self.output:
            raise ValueError("tokens must be 0 or more, and a part no larger than the whole")

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    @property
    def tokens(self) -> int:
        """Return all of them."""
        return self.input + self.output


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Holds an answer; `usage` is None where the server does not tell it, `refusal` what a model
    says that will not answer."""

    text: str
    finish: str
    model: str
    wall_s: float
    usage: Usage | None = None
    calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    reasoning: Reasoning | None = None

    @property
    def is_refused(self) -> bool:
        """Return whether the model, or what watches over it, will not answer."""
        return self.refusal is not None or self.finish == "content_filter"


class Endpoint(Protocol):
    """Answers asks."""

    def complete(self, ask: Ask, timeout_s: float) -> Reply:
        """Return the answer. Raises Unanswered, Failed, Rejected or Misconfigured where there is
        none."""
        ...


class Unanswered(Exception):
    """Says that asking again may help: 429, 5xx, a cut connection, an answer that is no JSON.

    `may_cost`: the server may have made an answer, and count it.
    """

    def __init__(self, detail: str, *, may_cost: bool, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.may_cost, self.retry_after_s = may_cost, retry_after_s


class Failed(Exception):
    """Says that this ask has no answer, however often it is repeated: an outcome that counts.

    `why` is `context` (longer than the model reads), `refused` (by the server's policy) or
    `too_long` (an answer longer than any kernel).
    """

    def __init__(self, why: str, detail: str) -> None:
        super().__init__(detail)
        self.why = why


class Rejected(Exception):
    """Says that the server will not take this ask, and may take others."""


class Misconfigured(Exception):
    """Says that no ask of this run can be answered: a wrong key, model or address."""


# Fields that a version added: left out where they are None, so that digests of older runs stay.
_ADDED = frozenset({"reasoning", "top_p", "top_k", "min_p", "extra"})


def plain(value: Any) -> Any:
    """Return the JSON value of an ask, a message or a sampling."""
    return _without_added(encode(value))


def _without_added(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {n: v for n, v in value.items() if v is not None or n not in _ADDED}
        return {name: _without_added(each) for name, each in kept.items()}
    return [_without_added(each) for each in value] if isinstance(value, list) else value


def canonical(value: Any) -> str:
    """Return the one JSON text of a value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Holds what a model is given of a problem at first; `topics` can be read by their names
    later."""

    system: str
    user: str
    topics: Mapping[str, str] = field(default_factory=dict)

    def rendered(self, tools: tuple[Tool, ...]) -> str:
        """Return all of it that a model gets, as one text."""
        parts = [f"# system\n\n{self.system}", f"# user\n\n{self.user}"]
        if tools:
            parts.append("# tools\n\n" + json.dumps(encode(tools), indent=1))
        return "\n\n".join(parts) + "\n"
