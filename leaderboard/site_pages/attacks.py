"""Shows what was tried to fool the judge or to harm its host: hostile kernels of the test suite."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest

from leaderboard.delivery.pages import Crumb, Page, Table, public_page
from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.links import url
from leaderboard.metrics.verdicts import words

# Written by `python -m tests.evaluator.attack_list`; a test compares it with the kernels.
EXPORT = Path(settings.BASE_DIR) / "fixtures" / "attacks.json"
COLUMNS = ("name", "device", "tries", "gets", "since", "aim", "like")
AIMS = {
    "answer": (
        "To pass without the right answer",
        "Kernels that skip the work, guess, or tell the judge that all is well.",
    ),
    "time": (
        "To seem faster than it is",
        "Kernels that get as far as the clock: they answer ahead of it or behind it, slow the"
        " reference down, or are right only while they are checked.",
    ),
    "host": (
        "To harm the host or the next run",
        "Kernels that use up the host, stop the judge, or leave something behind.",
    ),
}


@public_page()
def attacks(request: HttpRequest) -> Page:
    found = every_attack()
    return Page(
        template="attacks.html",
        section="methodology",
        context={"total": len(found), "groups": groups(found)},
        data={"attacks": found},
        table=Table.of(COLUMNS, found),
        crumbs=(
            Crumb(text="Leaderboard", url=url("board")),
            Crumb(text="Methodology", url=url("methodology")),
            Crumb(text="What was tried"),
        ),
    )


@functools.cache
def every_attack() -> Sequence[JsonObject]:
    """Return the attacks as the page's twins hold them, each before those that are like it."""
    known = json.loads(EXPORT.read_text())
    told = [
        {
            "name": one["name"],
            "device": one["device"],
            "tries": one["tries"],
            "verdicts": one["verdicts"],
            "gets": gets(one),
            "since": one["since"],
            "aim": aim(one),
            "like": one["like"],
        }
        for one in known
    ]
    return sorted(told, key=lambda one: (one["like"] or one["name"], bool(one["like"])))


def gets(attack: JsonObject) -> str:
    """Say what the judge makes of it. What is right is judged like any kernel, so there it must
    gain nothing."""
    named = [words(verdict) for verdict in attack["verdicts"] if verdict != "ok"]
    if len(named) == len(attack["verdicts"]):
        return " or ".join(named)
    bound = attack["speedup_below"]
    gain = f"its speedup is surely below {bound:g}×" if bound else "gains nothing"
    return " or ".join([*named, f"ok, and {gain}"])


def aim(attack: JsonObject) -> str:
    """Return which of AIMS an attack has, by what its kernel's test watches."""
    if attack["threatens_host"]:
        return "host"
    return "time" if attack["is_timed"] else "answer"


def groups(found: Sequence[JsonObject]) -> list[Mapping[str, object]]:
    return [
        {"aim": name, "title": title, "says": says, "rows": _nested(found, name)}
        for name, (title, says) in AIMS.items()
    ]


def _nested(found: Sequence[JsonObject], wanted: str) -> list[JsonObject]:
    """Return the attacks of an aim; `nested` are those that follow the one that they are like."""
    own = [one for one in found if one["aim"] == wanted]
    names = {one["name"] for one in own}
    return [{**one, "nested": one["like"] in names} for one in own]
