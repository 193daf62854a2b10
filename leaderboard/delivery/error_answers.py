"""Answers what cannot be done in the one shape of an error, or as a page that says the same."""

from __future__ import annotations

import errno

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from leaderboard.kit.request_error import RequestError
from leaderboard.models.catalogue import OutdatedSummaryError

RETRY_AFTER_S = 30
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)


def error_answer(request: HttpRequest, error: RequestError) -> HttpResponse:
    """Return JSON below /api/ and to who asked for data, a page to others."""
    if request.path.startswith("/api/") or request.path.endswith((".json", ".csv")):
        response: HttpResponse = JsonResponse(error.body, status=error.status)
    else:
        said = {"message": error.message, "fix": error.fix, "is_ours": error.status >= 500}
        response = HttpResponse(render_to_string("refused.html", said), status=error.status)
    response["Cache-Control"] = "no-store"
    if error.status == 503:
        response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def unavailability(error: BaseException | None) -> RequestError | None:
    """Return what to say of a fault that ends by itself or by an operator's hand: a database that
    is down, locked or of another release, a full disk. None of any other."""
    if isinstance(error, OutdatedSummaryError):
        message = "The site is being upgraded."
    elif isinstance(error, OperationalError | InterfaceError):
        message = "The database does not answer."
    elif isinstance(error, OSError) and error.errno in DISK_IS_FULL:
        message = "The site's disk is full."
    else:
        return None
    fix = "Nothing was half-stored. Try again as many seconds later as Retry-After says."
    return RequestError("unavailable", message, fix, status=503)


def exceeded_limit(error: Exception) -> RequestError | None:
    """Return which limit of Django's on forms a request exceeds; None for another error."""
    if isinstance(error, TooManyFilesSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        fix = "Put the kernels into one .zip or .tar.gz, and send that as `archive`."
        return RequestError("too_many_files", f"The form has more than {most} files.", fix)
    if isinstance(error, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        fix = "Send the fields that docs/api.md names, each once."
        return RequestError("too_many_fields", f"The form has more than {most} fields.", fix)
    return None
