"""Draws the heat map of categories by models."""

from __future__ import annotations

from django.http import HttpRequest

from leaderboard.board_pages.catalogue_figures import crumbs
from leaderboard.board_pages.taxonomy import (
    ALL,
    CATEGORY_PARAMETERS,
    METRICS,
    CategoryQuery,
    Side,
    category_query,
)
from leaderboard.delivery import cells
from leaderboard.delivery.pages import canonical_query
from leaderboard.figures.charts import categories as charts
from leaderboard.figures.charts.boards import ByCategory
from leaderboard.figures.findings import most_found
from leaderboard.figures.frame import Drawn, figure, framed
from leaderboard.figures.tables import category_table
from leaderboard.models import Harness


@figure(
    "category-heat",
    "Success by category",
    "Per cent of a category's problems; a published column is of the problems published.",
    *CATEGORY_PARAMETERS,
    tall=True,
)
def heat_map(request: HttpRequest) -> Drawn:
    query = category_query(request)
    rows, titles = heat_rows(query)
    return Drawn(
        spec=charts.heat_map(rows, titles, METRICS[query.metric][0]),
        table=category_table(rows, titles),
        crumbs=crumbs(canonical_query(request, CATEGORY_PARAMETERS)),
        under=str(query.setting or ""),
        title=heat_title(query),
    )


def heat_title(query: CategoryQuery) -> str:
    """Return the title with the row that is first over all categories, of those of models judged
    here, or else of those published."""
    title = f"{METRICS[query.metric][0]} by category"
    models = [side for side in query.shown if not side.baseline and side.harness != Harness.HUMAN]
    ours = [side for side in models if not side.claimed] or models
    told = [(side.name, _share(side, ALL, query.metric)) for side in ours]
    return most_found(title, told, cells.share_text, "leads over all")


def heat_frame(query: CategoryQuery, address: str) -> dict[str, object] | None:
    """Return the frame in the page; None where there is no model to show."""
    return framed(heat_map, address, title=heat_title(query)) if query.shown else None


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
