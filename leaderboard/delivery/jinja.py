"""Configures the language of the site's templates: Jinja2, and the words they may use in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.template import defaultfilters
from django.templatetags.static import static
from django.utils.module_loading import import_string
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from leaderboard.delivery import cells
from leaderboard.kit.durations import spelt
from leaderboard.kit.links import prefix, url
from leaderboard.kit.visible import visible
from leaderboard.metrics.verdicts import words

FILTERS: dict[str, Callable[..., str]] = {
    "words": words,
    "visible": lambda text: visible(str(text)),
    "share": cells.share_text,
    "ratio": cells.ratio_text,
    "microseconds": cells.microseconds_text,
    "bytes": cells.bytes_text,
    "count": cells.count_text,
    "capfirst": defaultfilters.capfirst,
    "day": lambda when: f"{when:%Y-%m-%d}" if when else "",
    "minute": lambda when: f"{when:%Y-%m-%d %H:%M}" if when else "",
    "second": lambda when: f"{when:%Y-%m-%d %H:%M:%S}" if when else "",
    "filesizeformat": defaultfilters.filesizeformat,
    "floatformat": defaultfilters.floatformat,
    "linebreaksbr": defaultfilters.linebreaksbr,
    "pluralize": defaultfilters.pluralize,
    "spelt": spelt,
    "urlquote": functools.partial(quote, safe=""),
}
# What `base.html` and `_tools.html` show where a page says nothing of it, as that of an error.
FRAME: dict[str, object] = {
    **dict.fromkeys(("section", "origin", "address", "card_address", "q", "said"), ""),
    **dict.fromkeys(("twins", "crumbs"), ()),
    "unlisted": False,
}


def environment(*, words: str, **options: Any) -> Environment:
    """Return the environment; an unknown name on a page is an error, not an empty place.

    `words` is the dotted path of further names, with what each stands for.
    """
    made = Environment(**{**options, "undefined": StrictUndefined})
    made.filters.update(FILTERS)
    made.globals.update(FRAME, url=url, static=functools.cache(static))
    made.globals.update(import_string(words))
    made.globals["software_version"] = settings.SOFTWARE_VERSION
    made.globals["part"] = functools.partial(_part, made)
    return made


def _part(made: Environment, name: str, /, **values: Hashable) -> Markup:
    """Render a template that knows nothing but these values, and so is drawn once for them."""
    return _drawn(made, prefix(), name, **values)


# Of what pages show little changes from one version of the data to the next.
@functools.lru_cache(maxsize=512)
def _drawn(made: Environment, start: str, name: str, /, **values: Hashable) -> Markup:
    """Render with addresses that begin with `start`. The template escapes, so this is markup."""
    return Markup(made.get_template(name).render(values))
