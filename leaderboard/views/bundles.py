"""Bundles to download: what it takes to repeat a run."""

from __future__ import annotations

import hashlib
import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import parse_etags
from django.views.decorators.http import require_safe

from leaderboard.bundle import bundle, folder_of
from leaderboard.models import Run, Visibility
from leaderboard.pages import PUBLIC, may_see
from leaderboard.views.figures.runs import run_called
from leaderboard.views.kernels import MOST_RUNS, shown_run, uses_of, with_report


@require_safe
def of_kernel(request: HttpRequest, digest: str) -> HttpResponse:
    """Of the run that the kernel's page shows, or of the newest where none has a verdict."""
    uses, private = uses_of(request, digest)
    runs = list(Run.objects.filter(kernel__in=uses).with_names()[:MOST_RUNS])
    found = with_report(shown_run(runs) or next(iter(runs), None))
    if found is None:
        raise Http404
    return answer(request, found, private)


@require_safe
def of_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    found = run_called(str(run_id))
    submission = found.kernel.submission
    private = submission.visibility == Visibility.PRIVATE
    if private and not may_see(request, submission.owner_id):
        raise Http404
    return answer(request, found, private)


def answer(request: HttpRequest, run: Run, private: bool) -> HttpResponse:
    body = bundle(run, run.kernel.source.text, run.report)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if not private and etag in parse_etags(request.headers.get("If-None-Match", "")):
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{folder_of(run)}.zip"'
    if not private:
        response["ETag"] = etag
    response["Cache-Control"] = "private, no-store" if private else PUBLIC
    return response
