"""Makes attacker-controlled bytes a text that any database, terminal and page can hold."""

from __future__ import annotations

import unicodedata


def plain_text(raw: bytes | str, max_chars: int | None = None) -> str:
    """Return UTF-8 with all that is invisible but newline and tab as U+FFFD, cut to `max_chars`."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if max_chars is not None and len(text) > max_chars:
        text = text[: max_chars - 1] + "…"
    return "".join(c if c in "\n\t" or _is_visible(c) else "\ufffd" for c in text)


def _is_visible(char: str) -> bool:
    """Return whether it is neither a control nor a format character (bidirectional overrides), nor
    half a pair."""
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs")
