"""Cells of words on a board. Few differ, so each is made once."""

from __future__ import annotations

import functools
from datetime import date

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.cells import MISSING
from leaderboard.verdicts import words

TIED = format_html('<span class="visually-hidden">{}</span>', ", not told apart in its bracket")


@functools.lru_cache(maxsize=4096)
def place_cell(place: str | None, tie: str) -> SafeString:
    """`tie` says where in its bracket the row stands; empty outside of one."""
    kind = f"place {tie}".strip()
    return format_html('<td class="{}">{}{}</td>', kind, place or "", TIED if tie else "")


@functools.lru_cache(maxsize=4096)
def words_cell(text: str, kind: str) -> SafeString:
    return format_html('<td class="{}">{}</td>', kind, text)


@functools.lru_cache(maxsize=64)
def chip_cell(trust: str) -> SafeString:
    return format_html('<td><span class="chip {}">{}</span></td>', trust, words(trust))


@functools.lru_cache(maxsize=4096)
def date_cell(day: date | None) -> SafeString:
    if day is None:
        return format_html('<td class="quiet tight">{}</td>', MISSING)
    text = day.isoformat()
    return format_html('<td class="quiet tight"><time datetime="{}">{}</time></td>', text, text)


def tick_cell(submission: int | None) -> SafeString:
    """A box to tick, named by its row's head, whose id is `s` with the number."""
    if submission is None:
        return words_cell("", "tick")
    return format_html(
        '<td class="tick"><input type="checkbox" name="with" value="{}" form="compare"'
        ' aria-labelledby="vs s{}"></td>',
        submission,
        submission,
    )
