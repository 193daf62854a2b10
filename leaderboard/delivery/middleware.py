"""Refuses requests that nothing behind could answer."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from leaderboard.delivery.error_answers import error_answer
from leaderboard.kit.request_error import RequestError

Handler = Callable[[HttpRequest], HttpResponse]


def limit_body(handler: Handler) -> Handler:
    """Refuse a body beyond PKB_MAX_BODY_BYTES, or PKB_MAX_ARCHIVE_BYTES where a form may carry an
    archive, before anything reads it, and one of which no length is told: Django would take it for
    empty."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if "HTTP_TRANSFER_ENCODING" in request.META and length == "0":
            message = "The request does not say how long its body is."
            fix = "Send it with Content-Length, not in chunks: curl does unless it reads a pipe."
            return error_answer(request, RequestError("no_length", message, fix, status=411))
        most = _most_bytes(request)
        if length.isdecimal() and int(length) <= most:
            return handler(request)
        message = f"The request is larger than {most >> 20} MiB."
        fix = "Send an archive in parts, as `pkb submit` does (docs/api.md), or fewer kernels."
        return error_answer(request, RequestError("too_large", message, fix, status=413))

    return middleware


def _most_bytes(request: HttpRequest) -> int:
    """Return a body's limit. Files of a form are kept on the disk while they come, all else in
    memory."""
    takes_archives = request.path_info in (reverse("submit"), reverse("api-submissions"))
    if takes_archives and request.content_type == "multipart/form-data":
        return int(settings.PKB_MAX_ARCHIVE_BYTES)
    return int(settings.PKB_MAX_BODY_BYTES)


def refuse_nul(handler: Handler) -> Handler:
    """Refuse a NUL in an address, which no database takes in a text."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if "\0" not in request.path and "%00" not in request.META.get("QUERY_STRING", ""):
            return handler(request)
        message, fix = "The address has a NUL character (%00).", "Leave it out."
        return error_answer(request, RequestError("bad_query", message, fix))

    return middleware
