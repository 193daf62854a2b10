"""Shows models by problems, and leads from a cell to its attempt."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from django.db.models import BigIntegerField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.board_pages import matrix_rows
from leaderboard.board_pages.matrix_rows import (
    CELL_COLUMNS,
    Group,
    Numbers,
    ProblemColumn,
    RowHead,
    cell_record,
)
from leaderboard.delivery.pages import (
    BadQuery,
    Crumb,
    Page,
    Redirect,
    Table,
    bad_query,
    canonical_query,
    public_page,
    redirect_to,
)
from leaderboard.delivery.paging import PAGE, PagePart, part_of, part_url
from leaderboard.kit.links import url
from leaderboard.metrics.telling_apart import told_apart
from leaderboard.read_model import boards
from leaderboard.read_model.board_query import BoardQuery, board_query
from leaderboard.read_model.boards import BoardRow
from leaderboard.read_model.columns import RankedRow, placed, usual_sort
from leaderboard.read_model.filters import (
    BOARD_PARAMETERS,
    SETTING_FILTERS,
    count_phrase,
)
from leaderboard.read_model.scopes import BoardScope, Named
from leaderboard.read_model.setting import tells_times

# Those that say which kernels of a submission count.
KERNEL_FILTERS = ("backend", "mechanism", "nccl")
PARAMETERS = (*BOARD_PARAMETERS, PAGE)
# As many as a screen shows; each is as wide as the catalogue.
ROWS_A_PAGE = 25


@public_page(*PARAMETERS)
def models_by_problems(request: HttpRequest) -> Page:
    query = board_query(request)
    rows = placed(query.judged(ahead=("solved",)), usual_sort(query.setting))
    others = [name for name in BOARD_PARAMETERS if name != "category"]
    asked = asked_for(query.scope)
    groups = grouped(asked, url("matrix"), canonical_query(request, others))
    columns = [column for group in groups for column in group.columns]
    numbers = tuple(tuple(one.signed for one in group.columns) for group in groups)
    part = part_of(request, rows, ROWS_A_PAGE, PARAMETERS)
    where = canonical_query(request, (*KERNEL_FILTERS, *SETTING_FILTERS))
    records = (cell_record(row.entry, cell) for row in rows for cell in row.entry.cells)
    context = {
        "page_url": url("matrix"),
        "filters": query.controls,
        "groups": groups,
        "is_wide": len(columns) <= matrix_rows.FEW_COLUMNS,
        "unscored": sum(not one.scored for one in columns),
        "legend": matrix_rows.legend(is_timed=tells_times(query.setting)),
        "withholds": any(row.entry.withheld for row in part.rows),
        "solved": matrix_rows.solved_cells((row.entry for row in rows), columns),
        "uncounted": list(dict.fromkeys(row.entry.model for row in rows if row.entry.baseline)),
        "rows": _rows(rows, part, numbers, (where, query.tail)),
        "links": part.links,
        "said": f"{in_words(part, len(rows))} · {query.setting}" if rows else "",
    }
    return Page(
        template="matrix.html",
        section="matrix",
        context=context,
        data=lambda: {
            "setting": query.setting and vars(query.setting),
            "problems": [one._asdict() for one in columns],
            "cells": list(records),
        },
        table=Table(columns=CELL_COLUMNS, rows=(list(record.values()) for record in records)),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Matrix")),
    )


def in_words(part: PagePart[RankedRow], total: int) -> str:
    if not part.links:
        return count_phrase(total, "submission")
    return (
        f"{part.start + 1} to {part.start + len(part.rows)} of {count_phrase(total, 'submission')}"
    )


def asked_for(scope: BoardScope) -> tuple[Named, ...]:
    return tuple(
        problem
        for problem in scope.every
        if scope.category in ("", problem.category) and scope.source in ("", problem.source)
    )


@functools.lru_cache(maxsize=16)
def grouped(problems: tuple[Named, ...], page: str, filters: str) -> tuple[Group, ...]:
    """Return the problems by category; `filters` is the query string of the other filters."""
    columns: dict[str, list[ProblemColumn]] = {}
    titles: dict[str, str] = {}
    for one in problems:
        titles[one.category] = one.category_title
        address = url("problem", one.number, one.slug)
        found = ProblemColumn(number=one.number, title=one.title, url=address, scored=one.scored)
        columns.setdefault(one.category, []).append(found)
    tail = f"&{filters}" if filters else ""
    return tuple(
        Group(title=titles[own], url=f"{page}?category={own}{tail}", columns=tuple(members))
        for own, members in columns.items()
    )


def _rows(
    rows: Sequence[RankedRow], part: PagePart[RankedRow], numbers: Numbers, ends: tuple[str, str]
) -> list[tuple[RowHead, SafeString]]:
    """Return the rows of a part, named so that no other row of the matrix has the name. `ends` end
    the addresses of attempts and of submissions."""
    every = [row.entry for row in rows]
    apart = dict(zip((one.submission for one in every), told_apart(every), strict=True))
    return [
        _row(entry, apart[entry.submission], numbers, *ends)
        for entry in boards.alone([row.entry for row in part.rows])
    ]


def _row(
    entry: BoardRow, how: str, numbers: Numbers, where: str, tail: str
) -> tuple[RowHead, SafeString]:
    submission = entry.submission or 0
    head = RowHead(
        submission=submission,
        model=entry.model,
        how=how,
        url=entry.url_with(tail),
        baseline=entry.baseline,
        unfiltered=entry.unfiltered,
        correct=entry.score.correct,
        withheld=entry.withheld,
    )
    return head, matrix_rows.row_cells(submission, entry.marks, numbers, where)


@require_safe
def row(request: HttpRequest, submission: int) -> HttpResponse:
    """Redirect to the part of the matrix that holds a submission, under the same filters."""
    try:
        query = board_query(request)
        rows = placed(query.judged(), usual_sort(query.setting))
    except BadQuery as error:
        return bad_query(error, "html")
    except Redirect as other:
        return redirect_to(other, request, BOARD_PARAMETERS)
    at = next((n for n, row in enumerate(rows) if row.entry.submission == submission), None)
    if at is None:
        raise Http404
    filters = canonical_query(request, BOARD_PARAMETERS)
    part = part_url(url("matrix"), filters, at // ROWS_A_PAGE + 1)
    return redirect(f"{part}#s{submission}")


@require_safe
def attempt(request: HttpRequest, submission: int, problem: int) -> HttpResponse:
    """Redirect to the run that a cell of the matrix shows."""
    try:
        entries = one_submission(board_query(request), submission)
    except BadQuery as error:
        return bad_query(error, "html")
    except Redirect as other:
        return redirect_to(other, request, BOARD_PARAMETERS)
    found = [cell for entry in entries for cell in entry.cells if cell.problem == problem]
    if not found:
        raise Http404
    return redirect("run", found[0].run)


def one_submission(query: BoardQuery, number: int) -> list[BoardRow]:
    """Return the entry of a submission with the kernels that count under the filters of the matrix;
    none without a setting."""
    if query.setting is None or number > BigIntegerField.MAX_BIGINT:
        return []
    return boards.judged(
        query.setting,
        query.scope.scored,
        submission=number,
        backend=query.chosen["backend"],
        mechanism=query.chosen["mechanism"],
        nccl_free=bool(query.chosen["nccl"]),
    )
