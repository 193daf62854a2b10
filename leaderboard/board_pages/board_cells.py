"""Renders rows of a board. Of cells of words few differ, so each is made once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.delivery import cells
from leaderboard.delivery.cells import MISSING
from leaderboard.kit.visible import visible
from leaderboard.metrics.number import Number
from leaderboard.metrics.verdicts import words
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.columns import RankedRow, cell_of

Columns = tuple[Number, ...]
TIED = format_html(
    '<span class="visually-hidden">{}</span>', ", not distinguishable in its bracket"
)


def kind_of(entry: BoardRow) -> str:
    if entry.claimed or entry.baseline:
        return "claimed" if entry.claimed else "baseline"
    return "human" if entry.by_people else "judged"


class RowStyle(NamedTuple):
    """Says how a row is drawn: `kind` sets its class, `tie` where in its bracket it stands, `tick`
    whether it can be compared. `tail` ends the address of a submission, `where` is the hardware of
    a row that has another than its board. A row `under` that of the same model does not repeat its
    name."""

    kind: str = "judged"
    tie: str = ""
    tick: bool = False
    tail: str = ""
    where: str = ""
    under: bool = False


def board_row(row: RankedRow, look: RowStyle, columns: tuple[Columns, Columns]) -> SafeString:
    """Return the markup of a row."""
    start = _to_place(look.kind, row.place, look.tie, look.under)
    return SafeString(f"{start}{_after_place(row.entry, look, columns)}")


@functools.lru_cache(maxsize=4096)
def _to_place(kind: str, place: str | None, tie: str, under: bool) -> str:
    kinds = " ".join(filter(None, (kind if kind != "judged" else "", "under" if under else "")))
    start = f'<tr class="{kinds}">' if kinds else "<tr>"
    where = f"place {tie}".strip()
    says = TIED if tie and not under else ""
    return start + format_html('<td class="{}">{}{}</td>', where, place or "", says)


def _after_place(entry: BoardRow, look: RowStyle, columns: tuple[Columns, Columns]) -> str:
    """Return the part of a row that depends on no other row."""
    left, right = columns
    made = [
        _under_cell(entry, look) if look.under else _name_cell(entry, look),
        *[cell_of(column, entry) for column in left],
        words_cell(entry.harness, "tight opens"),
        words_cell(", ".join(entry.backends), "kinds"),
        *[cell_of(column, entry) for column in right],
        chip_cell(entry.trust),
        date_cell(entry.day),
    ]
    if look.tick:
        is_here = look.kind not in ("claimed", "other")
        made.append(tick_cell(entry.submission if is_here else None))
    made.append(SafeString("</tr>"))
    return cells.joined(made)


def _name_cell(entry: BoardRow, look: RowStyle) -> SafeString:
    """Return the head of a row. That of a row judged here has an id, which names its box to
    tick."""
    is_here = entry.submission is not None and look.kind != "other"
    place = f' id="s{entry.submission:d}"' if is_here else ""
    vendor = f"<bdi>{_shown(entry.vendor)}</bdi>" if entry.vendor else ""
    number = f"no. {entry.submission:d}" if look.kind in ("judged", "human") else ""
    own = "house" if entry.house else "baseline"
    told = (vendor, number, _shown(look.where), _source_told(entry))
    maker = own if entry.baseline else ", ".join(filter(None, told))
    return SafeString(
        f'<th scope="row" class="first name"{place}><a href="{escape(entry.url_with(look.tail))}">'
        f"<bdi>{_shown(entry.model)}</bdi></a>{_made_how(entry)}<small>{maker}</small></th>"
    )


def _under_cell(entry: BoardRow, look: RowStyle) -> SafeString:
    """Return the head of a row that stands under another of the same model."""
    says = words(entry.trust)
    where = ", ".join(filter(None, (_shown(look.where), _source_told(entry))))
    return SafeString(
        f'<th scope="row" class="first name"><a href="{escape(entry.url_with(look.tail))}">'
        f'<span class="visually-hidden"><bdi>{_shown(entry.model)}</bdi>, </span>{escape(says)}</a>'
        f"{_made_how(entry)}<small>{where}</small></th>"
    )


def _source_told(entry: BoardRow) -> str:
    return "source withheld" if entry.withheld else ""


@functools.lru_cache(maxsize=4096)
def _how(harness: str, backends: tuple[str, ...]) -> str:
    return f'<small class="how">{escape(", ".join((harness, *backends)))}</small>'


def _made_how(entry: BoardRow) -> str:
    """Return harness and backends, which a narrow page shows beside the name."""
    return _how(entry.harness, entry.backends)


@functools.lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return escape(visible(text))


def brackets(rows: Sequence[RankedRow]) -> list[str]:
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
