"""Writes for people how long something took or waits. Used by pages of runs and by templates."""

from __future__ import annotations

UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def spelt(seconds: float) -> str:
    """Return the largest unit and the one below: `3 min 20 s`. As static/js/run.js writes it."""
    rest, parts = int(seconds), []
    for size, unit in UNITS:
        count, rest = divmod(rest, size)
        parts.append((count, unit))
    first = next((place for place, (count, _) in enumerate(parts) if count), None)
    if first is None:
        return "0 s"
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)
