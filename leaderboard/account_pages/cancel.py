"""Cancels a run for who may, and says who that is: its owner while it waits, and staff with that
permission."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from leaderboard.kit.permissions import END_RUNS, may
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Run
from leaderboard.runs import evaluation
from leaderboard.submissions import editing


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def cancel(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    found = get_object_or_404(Run.objects.reachable_by(request.user), pk=run_id)
    may_end = may(request.user, END_RUNS)
    if not may_end and not editing.is_own(request.user, found.kernel.submission):
        raise PermissionDenied
    context = {"section": "", "run": found, "may_end": may_end, "error": None}
    if request.method == "GET":
        return render(request, "cancel.html", context)
    try:
        evaluation.cancel(found, even_running=may_end)
    except RequestError as error:
        return render(request, "cancel.html", {**context, "error": error}, status=error.status)
    return redirect(found)


@never_cache
@require_GET
def may_cancel(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Answer whether who asks may cancel a run now: its page is the same for everybody."""
    found = get_object_or_404(Run.objects.reachable_by(request.user), pk=run_id)
    return JsonResponse({"may_cancel": editing.may_cancel(request.user, found)})
