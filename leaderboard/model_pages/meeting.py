"""Finds where submissions that somebody asks to compare were judged, and a setting they share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import urlencode

from django.db.models import Count, F, OuterRef, Q, Subquery

from leaderboard.delivery.pages import Redirect
from leaderboard.kit.links import url
from leaderboard.model_pages.side_by_side import LETTERS
from leaderboard.models import LeaderboardRow, PublishedResult, Submission
from leaderboard.read_model.boards import SETTING_FIELDS, Setting
from leaderboard.read_model.filters import SETTING_FILTERS, count_phrase, setting_query

NAME = re.compile(r"[a-z0-9-]{1,80}")
DIGITS_OF_A_KEY = 9
MOST_PLACES = 3
# The settings in which each of those asked for was judged, and how many others were in each.
Places = Mapping[str, Mapping[Setting, int]]


def judged_where(names: Iterable[str]) -> Places:
    """Return the settings of ranked submissions among these numbers and slugs, in the order given;
    one query."""
    asked = [name for name in dict.fromkeys(names) if NAME.fullmatch(name)]
    numbers = [int(name) for name in asked if name.isdecimal() and len(name) <= DIGITS_OF_A_KEY]
    named = Q(pk__in=numbers) | Q(model__slug__in=asked)
    alike = {name: OuterRef(f"leaderboard_rows__{name}") for name in SETTING_FIELDS}
    there = LeaderboardRow.objects.ranked().filter(**alike).exclude(submission=OuterRef("pk"))
    counted = there.order_by().values("hardware").annotate(others=Count("pk")).values("others")
    rows = Submission.objects.ranked().filter(named)
    fields = (f"leaderboard_rows__{name}" for name in SETTING_FIELDS)
    found: dict[str, dict[Setting, int]] = {}
    rows = rows.annotate(slug=F("model__slug"), others=Subquery(counted))
    for pk, slug, others, *values in rows.values_list("pk", "slug", "others", *fields):
        for name in (str(pk), slug):
            own = found.setdefault(name, {})
            if values[0] is not None:
                own[Setting(**dict(zip(SETTING_FIELDS, values, strict=True)))] = others or 0
    return {name: found[name] for name in asked if name in found}


def lead_to_categories(asked: Sequence[str], judged: Sequence[str], where: str) -> None:
    """Raise Redirect where somebody asks for a model of which only published results are known:
    those count problems by category, and name none."""
    names = [name for name in asked if NAME.fullmatch(name)]
    claims = PublishedResult.objects.filter(model__slug__in=names).order_by()
    known = set(claims.values_list("model__slug", flat=True).distinct())
    if known:
        models = dict.fromkeys([*judged, *(name for name in names if name in known)])
        query = urlencode({"models": ",".join(models)}, safe=",") + (f"&{where}" if where else "")
        raise Redirect(query, url("categories"))


def meeting(
    places: Places, settings: Sequence[Setting], here: Setting | None
) -> dict[str, str] | None:
    """Return another setting in which most of them were judged, two at least if there are two; None
    without one."""
    counts = [sum(one in found for found in places.values()) for one in settings]
    most = max(counts, default=0)
    if most < max(1, min(2, len(places))) or settings[counts.index(most)] == here:
        return None
    there = settings[counts.index(most)]
    every = "All of them were" if len(places) > 1 else "It was"
    return {
        "who": every if most == len(places) else f"{most} of them were",
        "text": str(there),
        "url": compare_url(places, there),
    }


def compare_url(names: Iterable[object], setting: Setting) -> str:
    """Return the address of a comparison of these, by number or by the slug of a model, in a
    setting."""
    chosen = urlencode(list(zip(LETTERS, names, strict=False)))
    return f"{url('compare')}?{chosen}&{setting_query(setting)}"


def differences(places: Places) -> list[str]:
    """Return the parts of a setting that two or more never shared, as `judge (5 against 3)`."""
    if len(places) < 2 or not all(places.values()) or _met(places):
        return []
    made = []
    for name, label in SETTING_FILTERS.values():
        values = [
            list(dict.fromkeys(str(getattr(s, name)) for s in own)) for own in places.values()
        ]
        if not set.intersection(*map(set, values)):
            made.append(f"{label.lower()} ({' against '.join(map(' or '.join, values))})")
    return made


def _met(places: Places) -> bool:
    every = [setting for own in places.values() for setting in own]
    return len(set(every)) < len(every)


def stands(places: Places, names: Collection[str]) -> list[dict[str, object]]:
    """Return for each of these the settings where it can be compared with most others."""
    made: list[dict[str, object]] = []
    for name in names:
        own = sorted(places.get(name, {}).items(), key=lambda pair: -pair[1])[:MOST_PLACES]
        links = [
            {"text": str(at), "url": compare_url([name], at), "others": count_phrase(n, "other")}
            for at, n in own
            if n
        ]
        made.append({"name": called(name), "links": links, "judged": bool(own)})
    return made


def called(name: str) -> str:
    return f"submission {name}" if name.isdecimal() else name
