"""Takes what an owner asks for a submission beside editing it: withdraw it, judge it again."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from leaderboard.account_pages.edit import edited_by, shown
from leaderboard.kit.request_error import RequestError
from leaderboard.runs import withdrawing
from leaderboard.submissions import editing, rejudging
from leaderboard.submissions.forms import EditForm


@never_cache
@login_required
@require_POST
def withdraw(request: HttpRequest, number: int) -> HttpResponse:
    found = edited_by(request, number, editing.is_own)
    assert request.user.is_authenticated
    try:
        withdrawing.withdraw(found, request.user, request.POST.get("reason", ""))
    except RequestError as error:
        return shown(request, found, EditForm(found), error=error, status=error.status)
    return redirect(found)


@never_cache
@login_required
@require_POST
def rerun(request: HttpRequest, number: int) -> HttpResponse:
    """Queue what can be judged again, and say what cannot."""
    found = edited_by(request, number, editing.is_own)
    assert request.user.is_authenticated
    try:
        plan = rejudging.rerun(found, request.user)
    except RequestError as error:
        return shown(request, found, EditForm(found), error=error, status=error.status)
    return shown(request, found, EditForm(found), plan=plan)
