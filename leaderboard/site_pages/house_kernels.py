"""Shows the text that teaches how one would write these kernels: docs/house-kernels.md."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from leaderboard.delivery.pages import Crumb, Page, public_page
from leaderboard.kit.links import url

TEXT = Path(settings.BASE_DIR) / "docs" / "house-kernels.md"
TABLE = (
    '<div class="scroll full" tabindex="0" role="region" aria-label="Table {}, scrolls sideways">'
    "<table>"
)


class Rendered(NamedTuple):
    """Holds a text as HTML, what comes before its chapters, and where they begin."""

    opening: SafeString
    body: SafeString
    contents: list[dict[str, str]]


@public_page()
def house_kernels(request: HttpRequest) -> Page:
    text = rendered()
    return Page(
        template="house_kernels.html",
        section="problems",
        context=text._asdict(),
        data={"markdown": TEXT.read_text()},
        crumbs=(Crumb(text="Problems", url=url("problems")), Crumb(text="House kernels")),
    )


@functools.cache
def rendered() -> Rendered:
    """Return the text without its title, which the page has."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(TEXT.read_text().partition("\n")[2])
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


def _chapters(tokens: Sequence[Token]) -> Iterator[dict[str, str]]:
    """Give each chapter an anchor."""
    for heading, inline in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            anchor = re.sub(r"\W+", "-", inline.content.lower()).strip("-")
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
