"""Serves the page on which moderators ban accounts and lift bans."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from leaderboard.kit.permissions import BAN, staff_page
from leaderboard.kit.request_error import RequestError
from leaderboard.kit.row_number import row_number
from leaderboard.models import Ban
from leaderboard.models.rulings import MAX_REASON
from leaderboard.runs import banning

MOST_SHOWN = 200


@staff_page(BAN)
@require_http_methods(["GET", "POST"])
def bans(request: HttpRequest) -> HttpResponse:
    """List bans, lift the one that `lift` names, or ban the account that `account` names."""
    if request.method == "GET":
        return _page(request)
    try:
        _do(request)
    except RequestError as error:
        return _page(request, error)
    return redirect("bans")


def _do(request: HttpRequest) -> None:
    assert request.user.is_authenticated
    if number := request.POST.get("lift", ""):
        found = get_object_or_404(Ban, pk=row_number(number))
        banning.lift(found, request.user)
        return
    name = request.POST.get("account", "").strip()
    user = User.objects.filter(username=name).first() if "\0" not in name else None
    if user is None:
        message = f"There is no account {name[:80]!r}."
        raise RequestError("unknown_account", message, "Copy its name.", status=404)
    hide = bool(request.POST.get("hide"))
    banning.ban(user, request.user, request.POST.get("reason", ""), hide=hide)


def _page(request: HttpRequest, error: RequestError | None = None) -> HttpResponse:
    told = request.POST if error else request.GET
    context = {
        "section": "account",
        "bans": Ban.objects.select_related("user")[:MOST_SHOWN],
        "account": told.get("account", ""),
        "reason": told.get("reason", ""),
        "max_reason": MAX_REASON,
        "error": error,
    }
    return render(request, "staff/bans.html", context, status=error.status if error else 200)
