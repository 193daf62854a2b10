"""Reads how the address of a submission names it: by number, and an unlisted one by a key, too."""

from __future__ import annotations

import secrets

from django.urls import register_converter
from django.urls.converters import StringConverter

from leaderboard.kit.row_number import row_number

KEY_BYTES = 12


class SubmissionAddress(StringConverter):
    """Matches `9` and `9-KEY` in a route."""

    regex = r"[0-9]+(?:-[\w-]+)?"


register_converter(SubmissionAddress, "submission")


def new_key() -> str:
    return secrets.token_urlsafe(KEY_BYTES)


def number_and_key(address: str) -> tuple[int, str]:
    """Split an address; return 0 and an empty key, which no row has, for a malformed one."""
    number, _, key = address.partition("-")
    return row_number(number), key
