"""Shows what text from submissions hides. Used wherever such a text is drawn."""

from __future__ import annotations

import re

# Marks that reorder what a reader sees, and control characters other than tab and newline: a source
# that looks harmless must be harmless (CVE-2021-42574). Then what is drawn as nothing: fillers,
# soft hyphens, and tags, in which a whole text for a machine can hide.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
)
# What colours a terminal, moves its cursor or names its window.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def without_ansi(text: str) -> str:
    """Return a text without the commands to a terminal in it."""
    return _ANSI.sub("", text)


def hides(text: str) -> bool:
    """Return whether a text has characters that readers do not see, or that reorder others."""
    return bool(_HIDDEN.search(text.replace("\r\n", "\n")))


def visible(text: str) -> str:
    """Write out hidden and reordering characters, as in `[U+202E]`. Still to be escaped."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))
