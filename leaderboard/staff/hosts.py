"""Serves the page on which operators drain, disable and rename hosts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from leaderboard.kit.permissions import RUN_HOSTS, staff_page
from leaderboard.kit.request_error import RequestError
from leaderboard.kit.row_number import row_number
from leaderboard.models import HostState, WorkerHost
from leaderboard.models.access import MAX_TITLE, heard_lately
from leaderboard.runs import host_states as acts


@staff_page(RUN_HOSTS)
@require_http_methods(["GET", "POST"])
def hosts(request: HttpRequest) -> HttpResponse:
    """List hosts, or do one thing to one of them, which the fields `state` or `title` say."""
    if request.method == "GET":
        return _page(request)
    number = request.POST.get("host", "")
    found = get_object_or_404(WorkerHost, pk=row_number(number))
    try:
        _do(request, found)
    except RequestError as error:
        return _page(request, error)
    return redirect("hosts")


def _do(request: HttpRequest, host: WorkerHost) -> None:
    assert request.user.is_authenticated
    if "title" in request.POST:
        acts.rename(host, request.user, request.POST["title"])
        return
    state = request.POST.get("state", "")
    if state not in HostState.values:
        message = f"A host is never {state[:40]!r}."
        raise RequestError("bad_state", message, f"Say one of: {', '.join(HostState.values)}.")
    acts.put(host, request.user, HostState(state))


def _page(request: HttpRequest, error: RequestError | None = None) -> HttpResponse:
    rows = WorkerHost.objects.select_related("token").annotate(is_alive=heard_lately())
    context = {
        "section": "account",
        "hosts": [
            {
                **{name: getattr(host, name) for name in ("pk", "host", "title", "queue", "state")},
                "token": host.token.prefix if host.token else "",
                "seen_at": host.last_seen_at,
                "alive": vars(host)["is_alive"],
                "others": [one for one in HostState if one != host.state],
            }
            for host in rows
        ],
        "verbs": {
            HostState.SERVING: "Enable",
            HostState.DRAINED: "Drain",
            HostState.DISABLED: "Disable",
        },
        "max_title": MAX_TITLE,
        "error": error,
    }
    return render(request, "staff/hosts.html", context, status=error.status if error else 200)
