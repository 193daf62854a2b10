"""Shows what kernels run with: versions and packages on each class of hardware."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse

from leaderboard.delivery.pages import Crumb, Page, Table, public_page
from leaderboard.kit.json_types import JsonDict
from leaderboard.read_model.environments import HostEnvironment, every_environment
from problems.environment import UTILS, digest, facts, imports

COLUMNS = ("hardware", "title", "name", "version", "is_import", "said_at")


@public_page(live=True)
def environment(request: HttpRequest) -> Page:
    every = list(every_environment().values())
    return Page(
        template="environment.html",
        section="hardware",
        context={"rows": [_row(one) for one in every], "utils": sorted({*sum(UTILS.values(), ())})},
        data={"environments": [_record(one) for one in every]},
        table=Table.of(COLUMNS, [line for one in every for line in _lines(one)]),
        crumbs=(
            Crumb(text="Leaderboard", url=reverse("board")),
            Crumb(text="Hardware", url=reverse("hardware-list")),
            Crumb(text="Environment"),
        ),
    )


def _row(one: HostEnvironment) -> JsonDict:
    return {
        "slug": one.slug,
        "title": one.title,
        "url": reverse("hardware", args=[one.slug]),
        "digest": digest(one.versions),
        "facts": facts(one.versions),
        "imports": imports(one.versions),
        "said_at": one.said_at,
    }


def _record(one: HostEnvironment) -> JsonDict:
    return {
        "hardware": one.slug,
        "title": one.title,
        "device": one.device,
        "said_at": one.said_at.isoformat() if one.said_at else None,
        "digest": digest(one.versions),
        "facts": facts(one.versions),
        "imports": imports(one.versions),
        "versions": dict(one.versions),
    }


def _lines(one: HostEnvironment) -> list[JsonDict]:
    said_at = one.said_at.isoformat() if one.said_at else None
    about = {"hardware": one.slug, "title": one.title, "said_at": said_at}
    named = [(name, text, False) for name, text in facts(one.versions).items()]
    named += [(name, text, True) for name, text in imports(one.versions).items()]
    return [
        {**about, "name": name, "version": text, "is_import": is_import}
        for name, text, is_import in named
    ]
