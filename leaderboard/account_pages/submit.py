"""Serves the form that hands kernels in; `intake` decides, as it does for the API."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from leaderboard.delivery.client_archive import client
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Harness, Team, Visibility
from leaderboard.models.teams import teams_of
from leaderboard.submissions.forms import SubmitForm, add_field_errors, last_values
from leaderboard.submissions.intake import Accepted, Metadata, accept, faults_beside
from leaderboard.submissions.seen_before import seen_before
from leaderboard.submissions.sources import kernels_in
from leaderboard.submissions.target_selection import TargetRequest


@never_cache
@require_http_methods(["GET", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return _page(request, status=403 if request.method == "POST" else 200)
    teams = Team.objects.filter(pk__in=teams_of(request.user))
    if request.method == "GET":
        first = {**last_values(request.user), "problem": request.GET.get("problem", "")}
        return _page(request, SubmitForm(teams, initial=first))
    form = SubmitForm(teams, request.POST, request.FILES)
    if not form.is_valid():
        data = form.cleaned_data
        faults = faults_beside(request.user, _metadata(data), data, _target(data))
        add_field_errors(form, faults, files_at="archive")
        return _page(request, form, status=400)
    try:
        accepted = hand_in(request, form)
    except RequestError as error:
        add_field_errors(form, error.fields)
        return _page(request, form, error=error, status=error.status)
    is_one = len(accepted.runs) == 1 and not form.cleaned_data["archive"]
    one = accepted.runs[0] if is_one else accepted.submission
    if seen := seen_before(accepted.submission, request.user):
        told = {"section": "submit", "seen": seen, "on": one.get_absolute_url()}
        return render(request, "seen_before.html", told)
    return redirect(one.get_absolute_url())


def hand_in(request: HttpRequest, form: SubmitForm) -> Accepted:
    """Store what a valid form holds. Raises RequestError."""
    assert request.user.is_authenticated
    data = form.cleaned_data
    key = request.POST.get("key", "").replace("\0", "")[:200] or None
    kernels = kernels_in(data)
    return accept(request.user, _metadata(data), kernels, _target(data), idempotency_key=key)


def _metadata(data: Mapping[str, Any]) -> Metadata:
    """Return what the fields of a form that could be read say. Without a harness the one that may
    have every field is taken."""
    texts = ("model", "vendor", "team", "notes", "link", "licence")
    return Metadata(
        harness=Harness(data.get("harness", Harness.AGENTIC)),
        visibility=Visibility(data.get("visibility", Visibility.PRIVATE)),
        withholds_source=data.get("withholds_source", False),
        public_from=data.get("public_from"),
        step_budget=data.get("step_budget"),
        cost_usd=data.get("cost_usd"),
        **{name: data.get(name, "") for name in texts},
    )


def _target(data: Mapping[str, Any]) -> TargetRequest:
    wanted = ("hardware", "world_size", "size", "dtype", "profile", "placement")
    return TargetRequest(**{name: data.get(name) or None for name in wanted})


def _page(
    request: HttpRequest,
    form: SubmitForm | None = None,
    *,
    error: RequestError | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the form. A refused one keeps its key: only mending it makes another request."""
    context = {
        "section": "submit",
        "form": form,
        "error": error,
        "key": request.POST.get("key") or uuid.uuid4().hex,
        "origin": request.build_absolute_uri("/")[:-1],
        "client_sha256": client()[1],
    }
    return render(request, "submit.html", context, status=status)
