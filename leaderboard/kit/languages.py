"""Says in which languages a kernel is written."""

from __future__ import annotations

from collections.abc import Sequence


def written(backend: str, found: Sequence[str]) -> str:
    """Return the backend that was declared, with the languages found in the source where these are
    others; none are found in what is not held."""
    if not found or list(found) == [backend]:
        return backend
    return f"{backend} declared, {' and '.join(found)} found"
