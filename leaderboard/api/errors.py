"""Answers every error of the API in one shape: {"error": {code, message, fix, fields?}}."""

from __future__ import annotations

import math
import sys

from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import bad_request as bad_request_page
from django.views.defaults import server_error as server_error_page
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from leaderboard.delivery.error_answers import error_answer, exceeded_limit, unavailability
from leaderboard.kit.request_error import RequestError
from leaderboard.submissions.archives import shown

_TOKEN_FIX = "Send `Authorization: Bearer <token>`; tokens are made at /account."
_KNOWN: dict[type[exceptions.APIException], tuple[str, str]] = {
    exceptions.NotAuthenticated: ("no_token", _TOKEN_FIX),
    exceptions.AuthenticationFailed: ("bad_token", _TOKEN_FIX),
    exceptions.PermissionDenied: ("wrong_scope", "Use a token with the scope this needs."),
    exceptions.NotFound: ("not_found", "See /api/v1/schema for the addresses there are."),
    exceptions.MethodNotAllowed: ("method_not_allowed", "See /api/v1/schema."),
    exceptions.ParseError: ("bad_request_body", "Send one valid JSON object in UTF-8."),
    exceptions.UnsupportedMediaType: (
        "bad_content_type",
        "Send application/json; docs/api.md says where a form or bytes are taken.",
    ),
    exceptions.NotAcceptable: ("not_acceptable", "Accept application/json."),
}


def handle(error: Exception, context: dict[str, object]) -> Response | None:
    """Return the answer to an error; None leaves it to Django, which logs it and answers 500."""
    answer, headers = _as_request_error(error), {}
    if answer is None:
        return None
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        headers["WWW-Authenticate"] = "Bearer"
    if wait_s := getattr(error, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait_s))
    set_rollback()
    return Response(answer.body, status=answer.status, headers=headers)


def _as_request_error(error: Exception) -> RequestError | None:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    if exceeded := exceeded_limit(error):
        return exceeded
    if isinstance(error, SuspiciousOperation):
        error = exceptions.ParseError(str(error))
    if isinstance(error, exceptions.ValidationError):
        fields = dict(_flat(error.detail))
        message = "Some fields cannot be accepted."
        return RequestError("invalid", message, "Mend the fields named.", fields=fields)
    if isinstance(error, exceptions.Throttled):
        fix = "Wait as many seconds as Retry-After says."
        return RequestError("throttled", str(error.detail), fix, status=429)
    if not isinstance(error, exceptions.APIException):
        return None
    code, fix = _KNOWN.get(type(error), (str(error.default_code), "See /api/v1/schema."))
    return RequestError(code, str(error.detail), fix, status=error.status_code)


def _flat(detail: object, name: str = "") -> list[tuple[str, str]]:
    """Return the nested details of a serializer as (`field.part`, sentence)."""
    if isinstance(detail, dict):
        items = [(shown(f"{name}.{key}").strip("."), value) for key, value in detail.items()]
        return [pair for key, value in items for pair in _flat(value, key)]
    if isinstance(detail, list):
        return [(name or "request", shown(" ".join(str(item) for item in detail)))]
    return [(name or "request", shown(str(detail)))]


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponse:
    fix = "See /api/v1/schema for the addresses there are."
    return JsonResponse(
        RequestError("not_found", "There is no such address.", fix).body, status=404
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses, with the limit that it exceeds if that is why."""
    exceeded = exceeded_limit(exception)
    return error_answer(request, exceeded) if exceeded else bad_request_page(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a fault of ours: JSON below /api/, a page elsewhere. Django calls it while it handles
    the exception."""
    if unavailable := unavailability(sys.exception()):
        return error_answer(request, unavailable)
    if not request.path.startswith("/api/"):
        return server_error_page(request)
    message, fix = "The site failed to answer.", "Try again; the fault has been logged."
    return JsonResponse(RequestError("server_error", message, fix).body, status=500)
