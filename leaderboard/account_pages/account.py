"""Shows a user's tokens and submissions, and makes and revokes tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from leaderboard.kit.links import url
from leaderboard.models import ApiToken, Moderation, Scope, Status, Submission
from leaderboard.models.runs import OPEN
from leaderboard.models.submissions import SubmissionQuerySet
from leaderboard.read_model.filters import count_phrase
from leaderboard.submissions import moderation
from leaderboard.submissions.forms import TokenForm

MOST_TOKENS = 50


@login_required
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    form = TokenForm(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        if ApiToken.objects.valid().filter(owner_id=request.user.pk).count() >= MOST_TOKENS:
            form.add_error(None, f"An account has at most {MOST_TOKENS} tokens: revoke one first.")
        else:
            secret = issue(request, form)
            form = TokenForm()
    context = {
        "section": "account",
        "form": form,
        "secret": secret,
        "tokens": ApiToken.objects.filter(owner_id=request.user.pk),
        "submissions": submission_rows(Submission.objects.owned_by(request.user)),
    }
    return render(request, "account.html", context, status=400 if form.errors else 200)


def issue(request: HttpRequest, form: TokenForm) -> str:
    """Make a token as the form says and return its text, which is shown this once."""
    assert request.user.is_authenticated
    data = form.cleaned_data
    token, text = ApiToken.objects.issue(
        scope=Scope(data["scope"]),
        name=data["name"],
        owner=request.user,
        lifetime=form.lifetime_or_none,
    )
    moderation.note_token(token, request.user)
    return text


@login_required
@require_POST
def revoke_token(request: HttpRequest, number: int) -> HttpResponse:
    """Revoke one of this user's tokens; raise Http404 for somebody else's."""
    found = get_object_or_404(ApiToken, pk=number, owner_id=request.user.pk, revoked_at=None)
    assert request.user.is_authenticated
    moderation.revoke(found, request.user)
    return redirect("account")


def submission_rows(own: SubmissionQuerySet) -> list[dict[str, object]]:
    """Return the newest first, which has to be said: grouping drops the order of a model."""
    found = own.order_by("-id").annotate(
        kernel_count=Count("kernels", distinct=True),
        open_runs=Count("kernels__runs", filter=Q(kernels__runs__status__in=OPEN)),
        failed_runs=Count("kernels__runs", filter=Q(kernels__runs__status=Status.FAILED)),
    )
    names = ("pk", "owner", "harness", "visibility", "public_from", "created_at", "model__name")
    told = ("moderation", "is_practice", "withholds_source")
    counts = ("kernel_count", "open_runs", "failed_runs")
    return [
        {
            **row,
            "model": row["model__name"],
            "url": url("submission", row["pk"]),
            "state": state_of(row),
            "may_edit": True,
        }
        for row in found.values(*names, *told, *counts)
    ]


def state_of(row: Mapping[str, Any]) -> str:
    """Say in a few words what has become of a submission."""
    if row["moderation"] != Moderation.ACCEPTED:
        return str(row["moderation"])
    parts = ["practice"] if row["is_practice"] else []
    parts += (
        [f"{count_phrase(row['open_runs'], 'run')} to come"] if row["open_runs"] else ["judged"]
    )
    parts += [f"{row['failed_runs']} without a result"] if row["failed_runs"] else []
    return ", ".join(parts)
