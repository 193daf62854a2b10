"""Draws what hardware reaches."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest

from leaderboard.delivery import cells
from leaderboard.delivery.pages import Crumb, Table
from leaderboard.figures.charts import hardware as charts
from leaderboard.figures.charts.hardware import DatasheetShare
from leaderboard.figures.findings import said
from leaderboard.figures.frame import Drawn, figure, framed
from leaderboard.kit.links import url
from leaderboard.models import Hardware
from leaderboard.read_model import calibration
from leaderboard.read_model.calibration import Reached


@figure(
    "hardware-limits",
    "Measured beside the datasheet",
    "What code can reach of what the vendor states.",
    "hardware",
)
def limits(request: HttpRequest) -> Drawn:
    slug = request.GET.get("hardware", "")
    # A slug of no kind of hardware may hold what a database refuses to compare.
    found = Hardware.objects.filter(slug=slug).first() if slug.isprintable() else None
    data = calibration.known_of(slug, found.facts if found else {})
    if data is None:
        raise Http404
    rows = calibration.reached(data)
    title, page = found.title if found else slug, url("hardware", slug)
    return Drawn(
        spec=charts.shares(shares_of(rows)),
        table=share_table(rows),
        crumbs=(
            Crumb(text="Hardware", url=url("hardware-list")),
            Crumb(text=title, url=page),
        ),
        title=limits_title(rows),
    )


def limits_title(rows: Sequence[Reached]) -> str:
    """Return the title with the least and the greatest share."""
    shares = [one.median for one in shares_of(rows)]
    if not shares:
        return limits.title
    ends = (cells.share_text(end) for end in (min(shares), max(shares)))
    return said(limits.title, f"{' to '.join(ends)} of it in the median")


def limit_figures(slug: str, rows: Sequence[Reached]) -> list[dict[str, object]]:
    if not any(row.datasheet for row in rows):
        return []
    return [framed(limits, f"hardware={slug}", title=limits_title(rows))]


def shares_of(rows: Sequence[Reached]) -> list[DatasheetShare]:
    return [
        DatasheetShare(
            name=row.title, median=row.median / row.datasheet, best=row.best / row.datasheet
        )
        for row in rows
        if row.datasheet
    ]


def share_table(rows: Sequence[Reached]) -> Table:
    columns = ("Quantity", "Median, % of the datasheet", "Best, %")
    shares = [[row.name, 100 * row.median, 100 * row.best] for row in shares_of(rows)]
    return Table(columns=columns, rows=shares)
