"""Serves the page on which readers complain, and the queue of staff."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from leaderboard.kit.permissions import RULE, may, staff_page
from leaderboard.kit.request_error import RequestError
from leaderboard.kit.row_number import row_number
from leaderboard.models import Complaint
from leaderboard.models.rulings import MAX_REASON, ComplaintOutcome
from leaderboard.staff.subjects import named, subject_called
from leaderboard.submissions import complaints as acts

ROWS_A_PAGE = 50
MOST_OWN = 20


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def complain(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    """Show or take the form; what this reader may not see does not exist here either."""
    assert request.user.is_authenticated
    subject = subject_called(request.user, kind, key)
    error = None
    if request.method == "POST":
        try:
            acts.complain(request.user, subject, request.POST.get("text", ""))
            return redirect(request.path)
        except RequestError as found:
            error = found
    own = acts.about(subject).filter(by=request.user.pk)
    context = {
        "section": "",
        "subject": named(subject),
        "own": own[:MOST_OWN],
        "is_open": own.filter(state=ComplaintOutcome.OPEN).exists(),
        "may_rule": may(request.user, RULE),
        "text": request.POST.get("text", ""),
        "max_reason": MAX_REASON,
        "error": error,
    }
    return render(request, "staff/complain.html", context, status=error.status if error else 200)


@staff_page(RULE)
@require_http_methods(["GET", "POST"])
def queue(request: HttpRequest) -> HttpResponse:
    """List complaints, the open ones unless `?state=` says others, or end one of them."""
    state = request.GET.get("state", ComplaintOutcome.OPEN.value)
    error = None
    if request.method == "POST":
        try:
            _end(request)
            return redirect("complaints")
        except RequestError as found:
            error = found
    rows = Complaint.objects.select_related("submission", "source", "run", "by", "ended_by")
    rows = rows.defer("source__packed", "run__report_packed").filter(state=state)
    part = Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "account",
        "state": state,
        "states": ComplaintOutcome.values,
        "rows": [{"complaint": row, "subject": named(_subject(row))} for row in part],
        "part": part,
        "max_reason": MAX_REASON,
        "error": error,
    }
    return render(request, "staff/complaints.html", context, status=error.status if error else 200)


def _subject(row: Complaint) -> acts.Subject:
    found = row.submission or row.source or row.run
    assert found is not None
    return found


def _end(request: HttpRequest) -> None:
    number, outcome = request.POST.get("complaint", ""), request.POST.get("outcome", "")
    found = get_object_or_404(Complaint, pk=row_number(number))
    assert request.user.is_authenticated
    known = (
        ComplaintOutcome(outcome) if outcome in ComplaintOutcome.values else ComplaintOutcome.OPEN
    )
    acts.end(found, request.user, known, request.POST.get("note", ""))
