"""Reads docs/house-kernels.md: how one would write these kernels, and why each family gains."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

TEXT = Path(settings.BASE_DIR) / "docs" / "house-kernels.md"
# What follows is for who changes these kernels: pages compute it from the results.
FAMILIES = "\n## By family\n"
TABLE = (
    '<div class="scroll full" tabindex="0" role="region" aria-label="Table {}, scrolls sideways">'
    "<table>"
)
_ROW = re.compile(r"^\| (?P<name>[^|]+) \| (?P<problems>\d[\d, to]*) \| (?P<why>[^|]+) \|$", re.M)
_RANGE = re.compile(r"(\d+)(?: to (\d+))?")


class Rendered(NamedTuple):
    """Holds a text as HTML, what comes before its chapters, and where they begin."""

    opening: SafeString
    body: SafeString
    contents: list[dict[str, str]]


class Family(NamedTuple):
    """Holds a name, the numbers of its problems, and why its kernels gain."""

    name: str
    problems: frozenset[int]
    why: str

    @property
    def anchor(self) -> str:
        return anchor_of(self.name)


@functools.cache
def families() -> tuple[Family, ...]:
    """Return the families of the text in its order."""
    _, _, rest = TEXT.read_text().partition(FAMILIES)
    chapter, _, _ = rest.partition("\n## ")
    return tuple(
        Family(row["name"], frozenset(_numbers(row["problems"])), row["why"])
        for row in _ROW.finditer(chapter)
    )


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers of `2, 3, 26 to 29`."""
    for first, last in _RANGE.findall(text):
        yield from range(int(first), int(last or first) + 1)


@functools.cache
def rendered() -> Rendered:
    """Return the chapters that teach, without the title, which the page has."""
    parser = MarkdownIt("commonmark").enable("table")
    taught, _, _ = TEXT.read_text().partition(FAMILIES)
    tokens = parser.parse(taught.partition("\n")[2])
    contents = list(_chapters(tokens))
    for token in tokens:
        if "style" in token.attrs:  # of a column of numbers; styles in place are not allowed here
            token.attrs = {"class": "num"}
        token.children = list(_without_files(token.children or []))
    body = parser.renderer.render(tokens, parser.options, {})
    number = itertools.count(1)
    body = re.sub("<table>", lambda _: TABLE.format(next(number)), body)
    body = body.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    opening, first, chapters = body.partition("<h2")
    return Rendered(mark_safe(opening), mark_safe(first + chapters), contents)


def anchor_of(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def _chapters(tokens: Sequence[Token]) -> Iterator[dict[str, str]]:
    """Give each chapter an anchor."""
    for heading, inline in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            anchor = anchor_of(inline.content)
            heading.attrs["id"] = anchor
            yield {"text": inline.content, "anchor": anchor}


def _without_files(tokens: Sequence[Token]) -> Iterator[Token]:
    """Leave the text of links that lead to files beside this one, which the site does not serve."""
    is_file = False
    for token in tokens:
        if token.type == "link_open":
            is_file = not str(token.attrs["href"]).startswith(("http", "#"))
        if not (is_file and token.type in ("link_open", "link_close")):
            yield token
