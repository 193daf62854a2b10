"""Serves the audit log, as a page and as CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import TYPES, Table, as_csv
from leaderboard.kit.permissions import READ_LOG, staff_page
from leaderboard.models import AuditEntry

ROWS_A_PAGE = 100
MOST_IN_CSV = 100_000
COLUMNS = ("at", "actor", "action", "subject", "detail")
FILTERS = ("actor", "action", "subject")
COMMAND_LINE = "command line"


@staff_page(READ_LOG)
@require_safe
def audit(request: HttpRequest, form: str = "html") -> HttpResponse:
    """Show the newest entries first, those of one `actor`, `action` or `subject` where it is
    given; a subject is found by its beginning."""
    asked = {name: request.GET.get(name, "").strip().replace("\0", "") for name in FILTERS}
    found = _found(**asked)
    if form == "csv":
        body = as_csv(Table(columns=COLUMNS, rows=_rows(found[:MOST_IN_CSV])))
        return HttpResponse(body, content_type=TYPES["csv"])
    part = Paginator(found, ROWS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "account",
        **asked,
        "actions": AuditEntry.objects.order_by("action")
        .values_list("action", flat=True)
        .distinct(),
        "rows": [dict(zip(COLUMNS, row, strict=True)) for row in _rows(part.object_list)],
        "part": part,
        "query": urlencode({name: value for name, value in asked.items() if value}),
    }
    return render(request, "staff/audit.html", context)


def _found(actor: str, action: str, subject: str) -> QuerySet[AuditEntry]:
    found = AuditEntry.objects.select_related("actor")
    if actor:
        whose = {"actor": None} if actor == COMMAND_LINE else {"actor__username": actor}
        found = found.filter(**whose)
    if action:
        found = found.filter(action=action)
    if subject:
        found = found.filter(subject__startswith=subject)
    return found


def _rows(entries: Iterable[AuditEntry]) -> Iterator[list[object]]:
    for entry in entries:
        who = entry.actor.get_username() if entry.actor else COMMAND_LINE
        detail = json.dumps(entry.detail, ensure_ascii=False, sort_keys=True)
        yield [entry.at, who, entry.action, entry.subject, detail]
