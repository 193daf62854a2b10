"""Answers /healthz, /readyz and /metrics before anything looks at the host name, at TLS or at a
session; and refuses everything else on a schema that is older than this release."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from leaderboard.delivery.error_answers import error_answer
from leaderboard.kit.request_error import RequestError
from leaderboard.operations import metrics, readiness

Handler = Callable[[HttpRequest], HttpResponse]


def answer_probes(handler: Handler) -> Handler:
    probes = {"/healthz": healthz, "/readyz": readyz, "/metrics": measured}

    def middleware(request: HttpRequest) -> HttpResponse:
        probe = probes.get(request.path_info)
        if probe is None or request.method not in ("GET", "HEAD"):
            return handler(request)
        response = probe(request)
        response["Cache-Control"] = "no-store"
        return response

    return middleware


def insist_on_schema(handler: Handler) -> Handler:
    """Refuse to serve until `migrate` has run: what reads a column that is not there yet would
    answer 500, and what it writes could be lost."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if readiness.is_schema_current():
            return handler(request)
        message, fix = "The site is being upgraded.", "Try again in a minute."
        return error_answer(request, RequestError("upgrading", message, fix, status=503))

    return middleware


def healthz(request: HttpRequest) -> HttpResponse:
    """Say that the process answers, whatever else is down."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """Say of each thing that the site needs whether it is there; 503 where it cannot serve."""
    found = readiness.checks()
    is_ready = readiness.is_ready(found)
    return JsonResponse({"ready": is_ready, **found}, status=200 if is_ready else 503)


def measured(request: HttpRequest) -> HttpResponse:
    """Return the metrics to who shows METRICS_TOKEN; without that setting there are none."""
    shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not settings.METRICS_TOKEN:
        return HttpResponse("METRICS_TOKEN is not set.\n", content_type="text/plain", status=404)
    if not hmac.compare_digest(shown.encode(), settings.METRICS_TOKEN.encode()):
        said = "Send `Authorization: Bearer <METRICS_TOKEN>`.\n"
        response = HttpResponse(said, content_type="text/plain", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)
