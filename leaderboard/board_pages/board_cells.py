"""Renders rows of a board. Of cells of words few differ, so each is made once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from html import escape
from itertools import groupby

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.delivery.cells import MISSING
from leaderboard.kit.visible import visible
from leaderboard.metrics.verdicts import words
from leaderboard.read_model.boards import Entry
from leaderboard.read_model.columns import Column, Placed

Columns = tuple[Column, ...]
TIED = format_html(
    '<span class="visually-hidden">{}</span>', ", not distinguishable in its bracket"
)


def kind_of(entry: Entry) -> str:
    if entry.claimed or entry.baseline:
        return "claimed" if entry.claimed else "baseline"
    return "human" if entry.by_people else "judged"


def board_row(
    row: Placed, tie: str, left: Columns, right: Columns, *, comparable: bool, tail: str = ""
) -> SafeString:
    """Return the markup of a row. `tie` says where in its bracket it stands; a `comparable` board
    has boxes to tick; `tail` ends addresses of submissions."""
    entry = row.entry
    start = _to_place(kind_of(entry), row.place, tie)
    return SafeString(f"{start}{_after_place(entry, left, right, comparable, tail)}")


@functools.lru_cache(maxsize=4096)
def _to_place(kind: str, place: str | None, tie: str) -> str:
    start = "<tr>" if kind == "judged" else f'<tr class="{kind}">'
    where = f"place {tie}".strip()
    return start + format_html('<td class="{}">{}{}</td>', where, place or "", TIED if tie else "")


def _after_place(entry: Entry, left: Columns, right: Columns, comparable: bool, tail: str) -> str:
    """Return the part of a row that depends on no other row."""
    kind = kind_of(entry)
    made = [
        _name_cell(entry, kind, tail),
        *[column.cell(entry) for column in left],
        words_cell(entry.harness, "tight opens"),
        words_cell(", ".join(entry.backends), "kinds"),
        *[column.cell(entry) for column in right],
        chip_cell(entry.trust),
        date_cell(entry.day),
    ]
    if comparable:
        made.append(tick_cell(entry.submission))
    made.append(SafeString("</tr>"))
    return cells.joined(made)


def _name_cell(entry: Entry, kind: str, tail: str) -> SafeString:
    """Return the head of a row. That of a row judged here has an id, which names its box to
    tick."""
    place = "" if entry.submission is None else f' id="s{entry.submission:d}"'
    vendor = f"<bdi>{_shown(entry.vendor)}</bdi>" if entry.vendor else ""
    number = f"no. {entry.submission:d}" if kind in ("judged", "human") else ""
    own = "house" if entry.house else "baseline"
    maker = own if kind == "baseline" else ", ".join(filter(None, (vendor, number)))
    return SafeString(
        f'<th scope="row" class="first name"{place}><a href="{escape(entry.url_with(tail))}">'
        f"<bdi>{_shown(entry.model)}</bdi></a><small>{maker}</small></th>"
    )


@functools.lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return escape(visible(text))


def brackets(rows: Sequence[Placed]) -> list[str]:
    """Return for each row the class that begins, continues or ends the bracket around its tie
    group; empty where it has none."""
    found = []
    for group, members in groupby(rows, key=lambda row: row.tie_group):
        size = len(list(members))
        if group is None:
            found += [""] * size
        else:
            found += ["tie top", *["tie"] * (size - 2), "tie end"]
    return found


@functools.lru_cache(maxsize=4096)
def words_cell(text: str, kind: str) -> SafeString:
    return format_html('<td class="{}">{}</td>', kind, text)


@functools.lru_cache(maxsize=64)
def chip_cell(trust: str) -> SafeString:
    return format_html('<td><span class="chip {}">{}</span></td>', trust, words(trust))


@functools.lru_cache(maxsize=4096)
def date_cell(day: str | None) -> SafeString:
    if day is None:
        return format_html('<td class="quiet tight">{}</td>', MISSING)
    return format_html('<td class="quiet tight"><time>{}</time></td>', day)


def tick_cell(submission: int | None) -> SafeString:
    """Return a box to tick, named by its row's head; an empty cell without a submission."""
    if submission is None:
        return words_cell("", "tick")
    return SafeString(
        f'<td class="tick"><input type="checkbox" name="with" value="{submission:d}"'
        f' form="compare" aria-labelledby="vs s{submission:d}"></td>'
    )
