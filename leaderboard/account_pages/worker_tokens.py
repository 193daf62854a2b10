"""Serves the page on which staff make, follow and revoke the tokens of judging hosts."""

from __future__ import annotations

import re

from django import forms
from django.contrib.auth.decorators import login_required, permission_required
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from leaderboard.kit.request_error import RequestError
from leaderboard.models import ApiToken, Scope
from leaderboard.models.access import ApiTokenQuerySet
from leaderboard.runs.hosts import class_named
from leaderboard.submissions import moderation
from leaderboard.submissions.forms import TokenForm

MAY_MAKE = "leaderboard.add_apitoken"
MOST_HOSTS = 20
_HOST = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)


class WorkerTokenForm(TokenForm):
    """Takes what a worker's token is for: classes of hardware, which are queues, and hosts."""

    scope = None  # type: ignore[assignment]
    queues = forms.CharField(
        max_length=400,
        label="Classes of hardware",
        help_text="The queues that it may take runs from, as in “h200x4” or “cpu”, by commas.",
    )
    hosts = forms.CharField(
        required=False,
        max_length=2000,
        help_text="Which hosts may use it, as hostname calls them, by commas. Any host of the class"
        " if left empty.",
    )
    groups = forms.IntegerField(
        min_value=1,
        max_value=64,
        initial=1,
        label="Groups of GPUs",
        help_text="How many workers a host runs, so how many runs it may have at once.",
    )
    field_order = ("name", "queues", "hosts", "groups", "lifetime")

    def clean_queues(self) -> list[str]:
        """Return the queues; refuse what no class of hardware is called."""
        queues = _by_commas(self.cleaned_data["queues"])
        if not queues:  # a token without any would be good for all
            raise forms.ValidationError("Name one class at least.")
        try:
            for queue in queues:
                class_named(queue)
        except RequestError as error:
            raise forms.ValidationError(f"{error.message} {error.fix}") from None
        return queues

    def clean_hosts(self) -> list[str]:
        """Return the names; refuse such as no host of a worker has."""
        names = _by_commas(self.cleaned_data["hosts"])
        if len(names) > MOST_HOSTS or not all(map(_HOST.fullmatch, names)):
            raise forms.ValidationError(f"Name at most {MOST_HOSTS} hosts, by commas.")
        return names


def _by_commas(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@login_required
@permission_required(MAY_MAKE, raise_exception=True)
@require_http_methods(["GET", "POST"])
def worker_tokens(request: HttpRequest) -> HttpResponse:
    """Show or take the form; the text of a new token is shown this once."""
    form = WorkerTokenForm(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        assert request.user.is_authenticated
        secret = issue(form, request.user)
        form = WorkerTokenForm()
    context = {"form": form, "secret": secret, "tokens": _of_workers()}
    return render(
        request, "account/worker_tokens.html", context, status=400 if form.errors else 200
    )


def issue(form: WorkerTokenForm, actor: AbstractBaseUser) -> str:
    """Make a token as the form says, with an entry in the audit log, and return its text."""
    data = form.cleaned_data
    bound = {"queues": data["queues"], "hosts": data["hosts"], "groups": data["groups"]}
    with transaction.atomic():
        token, text = ApiToken.objects.issue(
            scope=Scope.WORKER, name=data["name"], lifetime=form.lifetime_or_none, good_for=bound
        )
        moderation.note(actor, "make", f"token {token.prefix}", {"name": token.name, **bound})
    return text


@login_required
@permission_required(MAY_MAKE, raise_exception=True)
@require_POST
def revoke(request: HttpRequest, number: int) -> HttpResponse:
    """Revoke a worker's token, with an entry in the audit log; raise Http404 for another."""
    assert request.user.is_authenticated
    token = _of_workers().filter(pk=number).first()
    if token is None:
        raise Http404
    moderation.revoke(token, request.user)
    return redirect("worker-tokens")


def _of_workers() -> ApiTokenQuerySet:
    return ApiToken.objects.filter(scope=Scope.WORKER)
