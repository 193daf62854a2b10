"""Refuses requests that nothing behind could answer."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from leaderboard.delivery.error_answers import error_answer
from leaderboard.kit.request_error import RequestError

Handler = Callable[[HttpRequest], HttpResponse]


def limit_body(handler: Handler) -> Handler:
    """Refuse a body beyond PKB_MAX_BODY_BYTES before anything reads it, and one of which no length
    is told: Django would take it for empty."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if "HTTP_TRANSFER_ENCODING" in request.META and length == "0":
            message = "The request does not say how long its body is."
            fix = "Send it with Content-Length, not in chunks: curl does unless it reads a pipe."
            return error_answer(request, RequestError("no_length", message, fix, status=411))
        if length.isdecimal() and int(length) <= settings.PKB_MAX_BODY_BYTES:
            return handler(request)
        message = f"The request is larger than {settings.PKB_MAX_BODY_BYTES >> 20} MiB."
        fix = "Send fewer kernels at a time."
        return error_answer(request, RequestError("too_large", message, fix, status=413))

    return middleware


def refuse_nul(handler: Handler) -> Handler:
    """Refuse a NUL in an address, which no database takes in a text."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if "\0" not in request.path and "%00" not in request.META.get("QUERY_STRING", ""):
            return handler(request)
        message, fix = "The address has a NUL character (%00).", "Leave it out."
        return error_answer(request, RequestError("bad_query", message, fix))

    return middleware
