"""Reads the tokens that servers count, whatever their dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.generate.exchange import Usage

_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")


def usage_of(told: Any) -> Usage | None:
    """Return the tokens of an answer; None where the server does not count them, or its numbers do
    not fit together.

    OpenAI counts cached tokens as a part of the prompt and reasoning as a part of the completion.
    Others count them besides: `total_tokens` says so, or a part larger than its whole.
    """
    if not isinstance(told, dict):
        return None
    try:
        given = _first(told, "prompt_tokens", "input_tokens")
        made = _first(told, "completion_tokens", "output_tokens")
        cached = _part(told, ("prompt_tokens_details", "input_tokens_details"), _CACHED)
        reasoning = _part(
            told, ("completion_tokens_details", "output_tokens_details"), ("reasoning_tokens",)
        )
        beside = int(told.get("total_tokens") or 0) - given - made
        if reasoning and (reasoning > made or beside in (reasoning, reasoning + cached)):
            made, beside = made + reasoning, beside - reasoning
        if cached and (cached > given or beside == cached):
            given += cached
        return Usage(input=given, cached=cached, output=made, reasoning=reasoning)
    except (LookupError, StopIteration, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _first(told: Mapping[str, Any], *names: str) -> int:
    return int(next(told[name] for name in names if told.get(name) is not None))


def _part(told: Mapping[str, Any], details: tuple[str, ...], names: tuple[str, ...]) -> int:
    """Return the first of these numbers, in the details or beside them; 0 where there is none."""
    places = [*(told.get(name) or {} for name in details), told]
    return int(next((p[name] for p in places for name in names if p.get(name)), 0))
