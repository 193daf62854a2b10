"""Splits a long table into parts, each with an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.http import Http404, HttpRequest

from leaderboard.delivery.pages import canonical_query, choice

Item = TypeVar("Item")
PAGE = "page"


@dataclass(frozen=True, kw_only=True)
class PagePart(Generic[Item]):
    """Holds a part. `start` is how many rows come before; `links` lead to the other parts, by their
    `rel`."""

    rows: Sequence[Item]
    start: int
    links: tuple[dict[str, str], ...]


def part_of(
    request: HttpRequest, rows: Sequence[Item], size: int, parameters: Sequence[str]
) -> PagePart[Item]:
    """Return the part that `page` asks for, of at most `size` rows; links keep the other
    `parameters`. Raises BadQuery for what is no number, Http404 for a part that is not there."""
    last = max(1, -(-len(rows) // size))
    asked = request.GET.get(PAGE, "")
    if asked.isascii() and asked.isdigit() and not 1 <= int(asked[:9]) <= last:
        raise Http404
    number = int(choice(request, PAGE, [str(n + 1) for n in range(last)], "1"))
    kept = canonical_query(request, [name for name in parameters if name != PAGE])

    def link(rel: str, text: str, to: int) -> dict[str, str]:
        return {"rel": rel, "text": text, "url": part_url(request.path, kept, to)}

    back = [link("first", "First", 1), link("prev", "Previous", number - 1)] if number > 1 else []
    on = [link("next", "Next", number + 1), link("last", "Last", last)] if number < last else []
    start = (number - 1) * size
    return PagePart(rows=rows[start : start + size], start=start, links=(*back, *on))


def part_url(path: str, kept: str, number: int) -> str:
    tail = "&".join(filter(None, (kept, f"{PAGE}={number}" if number > 1 else "")))
    return f"{path}?{tail}" if tail else path
