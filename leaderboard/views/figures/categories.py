"""The heat map of categories by models."""

from __future__ import annotations

from django.http import HttpRequest

from leaderboard.charts import categories as charts
from leaderboard.charts.boards import ByCategory
from leaderboard.pages import Page, Table, public_page
from leaderboard.taxonomy import (
    ALL,
    CATEGORY_PARAMETERS,
    METRICS,
    CategoryQuery,
    Side,
    category_query,
)
from leaderboard.views.figures.board import category_table
from leaderboard.views.figures.frame import figure, figure_page


@public_page(*CATEGORY_PARAMETERS)
def heat_map(request: HttpRequest) -> Page:
    query = category_query(request)
    rows, titles = heat_rows(query)
    spec = charts.heat_map(rows, titles, METRICS[query.metric][0])
    return figure_page(spec, category_table(rows, titles))


def heat_frame(query: CategoryQuery, address: str) -> dict[str, object] | None:
    """The frame in the page; None where there is no model to show."""
    if not query.shown:
        return None
    tail = f"?{address}" if address else ""
    title = f"{METRICS[query.metric][0]} by category"
    says = "Per cent of a category's problems; a published column is of the problems published."
    table = heat_table(query)
    return figure(f"category-heat{tail}", title, says, table=table, tall=True)


def heat_table(query: CategoryQuery) -> Table:
    return category_table(*heat_rows(query))


def heat_rows(query: CategoryQuery) -> tuple[list[ByCategory], list[str]]:
    names = {**query.titles, ALL: "All"}
    rows = [
        ByCategory(
            model=side.model,
            name=side.name,
            values=tuple(_share(side, slug, query.metric) for slug in names),
        )
        for side in query.shown
    ]
    return rows, list(names.values())


def _share(side: Side, slug: str, metric: str) -> float | None:
    found = side.scores.get(slug)
    return METRICS[metric][1](found) if found else None
