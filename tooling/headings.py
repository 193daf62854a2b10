"""Read the headings of a page: what a picture of it must still show."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from tooling import places

# Of each picture, by the name of its file: the page, and the headings that it had.
FILE = places.IMAGES / "headings.json"
NAMES = ("h1", "h2", "h3", "th")


def of_page(html: str) -> list[str]:
    """Return the headings of a page and of its columns, in their order."""
    reader = _Reader()
    reader.feed(html)
    return [" ".join(text.split()) for text in reader.found]


def known() -> dict[str, dict[str, list[str]]]:
    """Return the headings that the pictures of docs/images had, by page and name of the file."""
    found: dict[str, dict[str, list[str]]] = json.loads(FILE.read_text())
    return found


def keep(found: dict[str, dict[str, list[str]]]) -> None:
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


class _Reader(HTMLParser):
    """Collects the text of headings; those of rows are data, and are passed over."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in NAMES and (tag != "th" or dict(attrs).get("scope") == "col"):
            self._inside = tag
            self.found.append("")
        elif self._inside:
            self.found[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += data
