"""What all figures share: the frame in a page, and the answer with the data."""

from __future__ import annotations

from django.urls import reverse

from leaderboard import cells
from leaderboard.charts.drawing import Spec
from leaderboard.models import Submission, Visibility
from leaderboard.pages import Page, Table


def figure(
    address: str, title: str, says: str, *, table: Table | None = None, tall: bool = False
) -> dict[str, object]:
    """The frame in a page. `address` is a name with its query string; `table` holds what the figure
    shows, a name first in every row."""
    name, _, query = address.partition("?")
    tail = f"?{query}" if query else ""
    return {
        "name": name,
        "url": reverse("figure", args=[name]) + tail,
        "csv_url": reverse("figure-csv", args=[name]) + tail,
        "title": title,
        "says": says,
        "columns": table.columns if table else (),
        "rows": [
            {"name": row[0], "cells": cells.joined(map(cells.any_cell, row[1:]))}
            for row in table.rows
        ]
        if table
        else [],
        "tall": tall,
    }


def figure_page(spec: Spec, table: Table, submission: Submission | None = None) -> Page:
    """The data of a figure; of a submission that is not for all, for those who may see it."""
    return Page(
        template="",
        section="",
        context={},
        data=spec,
        table=table,
        private=submission is not None and submission.visibility == Visibility.PRIVATE,
        owner_id=submission.owner_id if submission else None,
    )
