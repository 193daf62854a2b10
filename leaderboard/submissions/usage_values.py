"""Checks single values of what an archive of attempts tells."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable
from typing import Any

from leaderboard.models.generation_usage import MAX_COUNT
from leaderboard.submissions.archives import shown

MAX_TEXT, MAX_FIELDS = 200, 32
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Says what a value should be; empty where it is that.
Check = Callable[[Any], str]


def count(value: Any) -> str:
    is_one = type(value) is int and 0 <= value <= MAX_COUNT
    return "" if is_one else f"a whole number from 0 to {MAX_COUNT:,}"


def amount(most: float) -> Check:
    def check(value: Any) -> str:
        is_one = type(value) in (int, float) and math.isfinite(value) and 0 <= value <= most
        return "" if is_one else f"a number from 0 to {most:,.0f}"

    return check


def text(most: int) -> Check:
    def check(value: Any) -> str:
        is_one = isinstance(value, str) and len(value) <= most and value.isprintable()
        return "" if is_one else f"printable text of at most {most} characters"

    return check


def sha256(value: Any) -> str:
    is_one = isinstance(value, str) and _SHA256.fullmatch(value)
    return "" if is_one else "a SHA-256 in hexadecimal"


def day(value: Any) -> str:
    try:
        datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        return "a date such as 2026-11-25"
    return ""


def plain_object(value: Any) -> str:
    is_one = isinstance(value, dict) and len(value) <= MAX_FIELDS
    is_one = is_one and all(_is_plain(part) for pair in value.items() for part in pair)
    return "" if is_one else f"an object of at most {MAX_FIELDS} numbers and short texts"


def _is_plain(value: Any) -> bool:
    if type(value) in (int, float):
        return bool(abs(value) <= MAX_COUNT)
    return value is None or isinstance(value, bool) or not text(MAX_TEXT)(value)


def said(value: Any) -> str:
    """Return a value of somebody else, short: of a number too long to write its first digits."""
    try:
        return shown(json.dumps(value))
    except ValueError:
        return "a number of thousands of digits"
