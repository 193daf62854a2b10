"""Reads which row a form or an address names."""

from __future__ import annotations


def row_number(text: str) -> int:
    """Return the number of a row; 0, which no row has, for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 15 else 0
