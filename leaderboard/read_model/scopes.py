"""Reads which problems a page looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import IntegerField, QuerySet, Value
from django.http import HttpRequest

from leaderboard.delivery.pages import choice
from leaderboard.models import Problem
from leaderboard.read_model.boards import Setting
from leaderboard.read_model.problem_aggregates import beside, place_of


class Named(NamedTuple):
    """Holds a problem of the catalogue; `solved` is by how many submissions, where that is asked
    for."""

    number: int
    slug: str
    title: str
    category: str
    category_title: str
    scored: bool
    ranked_from: int
    source: str | None
    solved: int | None


@dataclass(frozen=True, kw_only=True)
class BoardScope:
    """Describes the problems that shares are of. `sizes` counts the scored problems of each
    category, `totals` all of them; `every` names the problems of all categories. `least_ranks` are
    those from which each problem is scored that is, on some number of ranks."""

    category: str
    scored: int
    titles: dict[str, str]
    sizes: dict[str, int]
    totals: dict[str, int]
    least_ranks: tuple[int, ...] = ()
    source: str = ""
    sources: tuple[str, ...] = ()
    every: tuple[Named, ...] = ()

    def scored_on(self, ranks: int) -> int:
        """Return how many of the problems asked for are scored on so many ranks."""
        return sum(least <= ranks for least in self.least_ranks)

    @property
    def problems(self) -> frozenset[int] | None:
        """Return the numbers of those of the source asked for; None for all."""
        own = frozenset(one.number for one in self.every if one.source == self.source)
        return own if self.source else None


def scope(
    request: HttpRequest, *asked: str, setting: Setting | None = None, ranks: int | None = None
) -> BoardScope:
    """Read in one query how many problems are scored in each category, and what is solved in a
    setting. Those that are not ranked on so many `ranks` are not scored there.

    `asked` names those of the parameters `category` and `source` that the page reads.
    """
    named = [Named._make(row) for row in _named(setting)]
    rows = tuple(_ranked(row, ranks) for row in named)
    titles = {row.category: row.category_title for row in rows}
    sources = tuple(sorted({row.source for row in rows if row.source}))
    category = choice(request, "category", list(titles)) if "category" in asked else ""
    source = choice(request, "source", sources) if "source" in asked else ""
    sizes, totals = dict.fromkeys(titles, 0), dict.fromkeys(titles, 0)
    for row in rows:
        is_asked = source in ("", row.source)
        totals[row.category] += is_asked
        sizes[row.category] += row.scored and is_asked
    return BoardScope(
        category=category,
        scored=sizes[category] if category else sum(sizes.values()),
        least_ranks=tuple(
            one.ranked_from
            for one in named
            if one.scored and category in ("", one.category) and source in ("", one.source)
        ),
        titles=titles,
        sizes=sizes,
        totals=totals,
        source=source,
        sources=sources,
        every=rows,
    )


def _ranked(one: Named, ranks: int | None) -> Named:
    return one if ranks is None else one._replace(scored=one.scored and one.ranked_from <= ranks)


def _named(setting: Setting | None) -> QuerySet[Problem, tuple[Any, ...]]:
    problems = Problem.objects.order_by("number")
    if setting is None:
        return problems.values_list(*Named._fields[:-1], Value(None, output_field=IntegerField()))
    return beside(problems, place_of(setting)).values_list(*Named._fields[:-1], "here__solved")
