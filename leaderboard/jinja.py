"""The language of the site's templates: Jinja2, and the words they may use in it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from django.template import defaultfilters
from django.templatetags.static import static
from django.urls import get_script_prefix, reverse
from jinja2 import Environment, StrictUndefined

from leaderboard import cells
from leaderboard.visible import visible

MOST_ADDRESSES = 10_000
FILTERS: dict[str, Callable[..., str]] = {
    "visible": lambda text: visible(str(text)),
    "share": cells.share_text,
    "ratio": cells.ratio_text,
    "microseconds": cells.microseconds_text,
    "bytes": cells.bytes_text,
    "count": cells.count_text,
    "capfirst": defaultfilters.capfirst,
    "date": defaultfilters.date,
    "filesizeformat": defaultfilters.filesizeformat,
    "floatformat": defaultfilters.floatformat,
    "linebreaksbr": defaultfilters.linebreaksbr,
    "pluralize": defaultfilters.pluralize,
    "urlquote": functools.partial(quote, safe=""),
}
# What `base.html` and `_tools.html` show where a page says nothing of it, as that of an error.
FRAME: dict[str, object] = {
    **dict.fromkeys(("section", "origin", "address", "q", "said"), ""),
    **dict.fromkeys(("twins", "crumbs"), ()),
    "unlisted": False,
}


def environment(**options: Any) -> Environment:
    """A name that a page does not know is an error, not an empty place."""
    made = Environment(**{**options, "undefined": StrictUndefined})
    made.filters.update(FILTERS)
    made.globals.update(FRAME, url=url, static=functools.cache(static))
    return made


def url(name: str, *args: object) -> str:
    return _reversed(get_script_prefix(), name, args)


@functools.lru_cache(maxsize=MOST_ADDRESSES)
def _reversed(prefix: str, name: str, args: tuple[object, ...]) -> str:
    """Django takes about 50 us to find out; the prefix is a part of what it finds."""
    return reverse(name, args=args)
