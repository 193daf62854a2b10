"""The leaderboard."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse

from leaderboard import boards
from leaderboard.columns import (
    BY_KEY,
    CSV_COLUMNS,
    DEFAULT_SORT,
    SORTS,
    Placed,
    as_record,
    cells_of,
    csv_rows,
    placed,
)
from leaderboard.filters import BOARD_PARAMETERS, board_query, said
from leaderboard.pages import Page, Table, canonical_query, choice, public_page
from leaderboard.verdicts import words
from leaderboard.views.figures.board import board_figures, fast_p_curves, mode_counts


@public_page("sort", *BOARD_PARAMETERS)
def board(request: HttpRequest) -> Page:
    sort = choice(request, "sort", SORTS, DEFAULT_SORT)
    query = board_query(request)
    ours, claims = query.judged(), query.claims()
    rows = placed([*ours, *map(boards.claim, claims)], sort)
    address = canonical_query(request, BOARD_PARAMETERS)
    curves = fast_p_curves(ours, claims, query.scope.scored)
    context = {
        "scored": query.scope.scored,
        "judged": len(ours),
        "claimed": len(claims),
        "showing": str(query.setting or "published claims only"),
        "page_url": reverse("board"),
        "filters": query.controls,
        "sort": "" if sort == DEFAULT_SORT else sort,
        "columns": [_heading(key, sort, address) for key in BY_KEY],
        "rows": [row_context(row) for row in rows],
        "figures": board_figures(curves, mode_counts(ours, claims), address),
        "citation": claims[0].publication.citation if claims else "",
        "said": said(len(rows), "row"),
    }
    setting = query.setting and vars(query.setting)
    return Page(
        template="leaderboard.html",
        section="board",
        context=context,
        data={"setting": setting, "rows": [as_record(row) for row in rows]},
        table=Table(columns=CSV_COLUMNS, rows=csv_rows(rows)),
    )


def row_context(row: Placed) -> dict[str, object]:
    entry = row.entry
    return {
        **{name: getattr(entry, name) for name in ("model", "vendor", "harness", "url", "date")},
        "place": row.place or "",
        "claimed": entry.claimed,
        "trust": entry.trust,
        "trust_text": words(entry.trust),
        "cells": cells_of(entry),
    }


def _heading(key: str, sort: str, address: str) -> dict[str, str]:
    """A header that sorts by its column, and turns the order round when it does already."""
    column, current = BY_KEY[key], sort.removeprefix("-")
    turned = f"-{key}" if sort == key else key
    parts = [part for part in (address, "" if turned == DEFAULT_SORT else f"sort={turned}") if part]
    direction = "ascending" if sort.startswith("-") else "descending"
    return {
        "label": column.label,
        "unit": column.unit,
        "url": reverse("board") + ("?" + "&".join(parts) if parts else ""),
        "sorted": direction if key == current else "",
    }
