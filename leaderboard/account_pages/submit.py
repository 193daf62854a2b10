"""Serves the form that hands kernels in; `intake` decides, as it does for the API."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from leaderboard.delivery.client_archive import client
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Harness, Team, Visibility
from leaderboard.models.teams import teams_of
from leaderboard.submissions.forms import SubmitForm, add_field_errors
from leaderboard.submissions.intake import Accepted, Metadata, accept
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
        return _page(
            request, SubmitForm(teams, initial={"problem": request.GET.get("problem", "")})
        )
    form = SubmitForm(teams, request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, form, status=400)
    try:
        accepted = hand_in(request, form)
    except RequestError as error:
        add_field_errors(form, error)
        return _page(request, form, error=error, status=error.status)
    one = accepted.runs[0] if len(accepted.runs) == 1 else accepted.submission
    if seen := seen_before(accepted.submission, request.user):
        told = {"section": "submit", "seen": seen, "on": one.get_absolute_url()}
        return render(request, "seen_before.html", told)
    return redirect(one.get_absolute_url())


def hand_in(request: HttpRequest, form: SubmitForm) -> Accepted:
    """Store what a valid form holds. Raises RequestError."""
    assert request.user.is_authenticated
    data = form.cleaned_data
    metadata = Metadata(
        model=data["model"],
        vendor=data["vendor"],
        harness=Harness(data["harness"]),
        visibility=Visibility(data["visibility"]),
        public_from=data["public_from"],
        team=data["team"],
        step_budget=data["step_budget"],
        cost_usd=data["cost_usd"],
        notes=data["notes"],
        link=data["link"],
        licence=data["licence"],
        withholds_source=data["withholds_source"],
    )
    wanted = ("hardware", "world_size", "size", "dtype", "profile", "placement")
    requested = TargetRequest(**{name: data[name] or None for name in wanted})
    key = request.POST.get("key", "").replace("\0", "")[:200] or None
    return accept(request.user, metadata, kernels_in(data), requested, idempotency_key=key)


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
