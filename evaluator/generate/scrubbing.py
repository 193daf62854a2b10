"""Keeps keys and tokens out of whatever is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HIDDEN = "***"
LEAST_CHARS = 12  # shorter ones, as local servers want, are no secret and may be a word of a kernel


def scrubber(*keys: str | None) -> Callable[[Any], Any]:
    """Return what puts a mark in place of keys in all texts of a JSON value."""
    secrets = [key for key in keys if key and len(key) >= LEAST_CHARS]
    if not secrets:
        return lambda value: value

    def scrub(value: Any) -> Any:
        if isinstance(value, str):
            for secret in secrets:
                value = value.replace(secret, HIDDEN)
            return value
        if isinstance(value, dict):
            return {name: scrub(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [scrub(item) for item in value]
        return value

    return scrub
