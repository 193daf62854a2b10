"""What hardware reaches, as a figure."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest

from leaderboard import calibration
from leaderboard.calibration import Reached
from leaderboard.charts import hardware as charts
from leaderboard.charts.hardware import Share
from leaderboard.models import Hardware
from leaderboard.pages import Page, Table, public_page
from leaderboard.views.figures.frame import figure, figure_page


@public_page("hardware")
def limits(request: HttpRequest) -> Page:
    slug = request.GET.get("hardware", "")
    # A slug of no kind of hardware may hold what a database refuses to compare.
    found = Hardware.objects.filter(slug=slug).first() if slug.isprintable() else None
    data = calibration.known_of(slug, found.facts if found else {})
    if data is None:
        raise Http404
    rows = calibration.reached(data)
    return figure_page(charts.shares(shares_of(rows)), share_table(rows))


def limit_figures(slug: str, rows: Sequence[Reached]) -> list[dict[str, object]]:
    if not shares_of(rows):
        return []
    title, says = "Measured beside the datasheet", "What code can reach of what the vendor states."
    return [figure(f"hardware-limits?hardware={slug}", title, says, table=share_table(rows))]


def shares_of(rows: Sequence[Reached]) -> list[Share]:
    return [
        Share(name=row.title, median=row.median / row.datasheet, best=row.best / row.datasheet)
        for row in rows
        if row.datasheet
    ]


def share_table(rows: Sequence[Reached]) -> Table:
    columns = ("Quantity", "Median, % of the datasheet", "Best, %")
    shares = [[row.name, 100 * row.median, 100 * row.best] for row in shares_of(rows)]
    return Table(columns=columns, rows=shares)
