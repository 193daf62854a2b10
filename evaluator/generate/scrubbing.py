"""Keeps the key out of whatever is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HIDDEN = "***"
LEAST_CHARS = 12  # shorter ones, as local servers want, are no secret and may be a word of a kernel


def scrubber(key: str | None) -> Callable[[Any], Any]:
    """Return what puts a mark in place of a key in all texts of a JSON value."""
    if not key or len(key) < LEAST_CHARS:
        return lambda value: value

    def scrub(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(key, HIDDEN)
        if isinstance(value, dict):
            return {name: scrub(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [scrub(item) for item in value]
        return value

    return scrub
