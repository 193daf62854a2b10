"""Refuses requests that are too large."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

Handler = Callable[[HttpRequest], HttpResponse]


def limit_body(handler: Handler) -> Handler:
    """Refuse a body beyond PKB_MAX_BODY_BYTES before anything reads it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdigit() and int(length) <= settings.PKB_MAX_BODY_BYTES:
            return handler(request)
        limit_mib = settings.PKB_MAX_BODY_BYTES >> 20
        error = {
            "code": "too_large",
            "message": f"The request is larger than {limit_mib} MiB.",
            "fix": "Send fewer kernels at a time.",
        }
        return JsonResponse({"error": error}, status=413)

    return middleware
