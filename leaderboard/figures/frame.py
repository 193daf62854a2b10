"""Frames a figure in a page, and gives it a page of its own with its twins."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.http import HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Page, Table, View, canonical_query, public_page
from leaderboard.figures.charts.drawing import Spec
from leaderboard.kit.links import url
from leaderboard.models import Submission, Visibility

# Fewer kernels, problems or submissions are told in words.
LEAST_DRAWN = 3


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Holds a figure with its data.

    Rows of `table` begin with a name. `crumbs` lead to the page it belongs to, `under` tells the
    setting and filters; `title` and `says` replace the figure's own where the data has more to say.
    """

    spec: Spec
    table: Table
    crumbs: tuple[Crumb, ...]
    under: str = ""
    title: str = ""
    says: str = ""
    submission: Submission | None = None


Draw = Callable[[HttpRequest], Drawn]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Describes a figure; `reads` names the query parameters that `draw` looks at."""

    name: str
    title: str
    says: str
    reads: tuple[str, ...]
    draw: Draw
    tall: bool = False

    @functools.cached_property
    def path(self) -> str:
        return url("figure", self.name)

    @functools.cached_property
    def view(self) -> View:
        return public_page(*self.reads)(functools.partial(page_of, self))


def figure(
    name: str, title: str, says: str, *reads: str, tall: bool = False
) -> Callable[[Draw], Figure]:
    """Return a decorator that makes a Figure of a function that draws it."""

    def decorate(draw: Draw) -> Figure:
        return Figure(name=name, title=title, says=says, reads=reads, draw=draw, tall=tall)

    return decorate


def framed(one: Figure, query: str, *, title: str = "", says: str = "") -> dict[str, object]:
    """Return the context of the frame, which computes nothing: scripts ask for the data."""
    tail = f"?{query}" if query else ""
    return {
        "name": one.name,
        "title": title or one.title,
        "says": says or one.says,
        "tall": one.tall,
        "url": one.path + tail,
        "json_url": f"{one.path}.json{tail}",
        "csv_url": f"{one.path}.csv{tail}",
    }


def drawn_from(one: Figure, what: str) -> str:
    """Return the beginning of a sentence that stands in place of a figure with too few of these."""
    return f"“{one.title}” is drawn from {LEAST_DRAWN} {what} on"


def page_of(one: Figure, request: HttpRequest) -> Page:
    """Return the figure's own page, for those who may see the submission that it is of."""
    drawn = one.draw(request)
    shown = framed(one, canonical_query(request, one.reads), title=drawn.title, says=drawn.says)
    of = drawn.submission
    return Page(
        template="figure.html",
        section="",
        context={
            "figure": shown,
            "said": drawn.under,
            "columns": drawn.table.columns,
            "rows": drawn_rows(drawn.table),
        },
        data=drawn.spec,
        table=drawn.table,
        private=of is not None and of.visibility == Visibility.PRIVATE,
        unlisted=of is not None and of.visibility != Visibility.PUBLIC,
        varies=of is not None and of.withholds_source,
        of=of,
        crumbs=(*drawn.crumbs, Crumb(text=str(shown["title"]))),
    )


def drawn_rows(table: Table) -> Iterator[dict[str, object]]:
    for row in table.rows:
        yield {"name": row[0], "cells": cells.joined(map(cells.any_cell, row[1:]))}
