"""Bundles to download: what it takes to repeat a run. Cached like pages: packing takes time."""

from __future__ import annotations

import functools
import gzip
import uuid
from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, may_see
from leaderboard.models import Run, Visibility
from leaderboard.run_pages.bundle import bundle
from leaderboard.run_pages.kernel import runs_of, shown_run, uses_of, with_report
from leaderboard.run_pages.run_figures import run_called

ZIP = "application/zip"


@require_safe
def of_kernel(request: HttpRequest, digest: str) -> HttpResponse:
    """Of the run that the kernel's page shows, or of the newest where none has a verdict."""

    def found() -> Run | None:
        uses, _ = uses_of(request, digest)
        runs = runs_of(uses)
        return with_report(shown_run(runs) or next(iter(runs), None))

    return _answer(request, f"pkb-kernel-{digest[:12]}", found)


@require_safe
def of_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    return _answer(request, f"pkb-run-{str(run_id)[:8]}", lambda: run_called(str(run_id)))


def _answer(request: HttpRequest, name: str, found: Callable[[], Run | None]) -> HttpResponse:
    make = functools.partial(_make, request, found)
    response = answer_public(request, f"zip {request.path}", make)
    response["Content-Disposition"] = f'attachment; filename="{name}.zip"'
    return response


def _make(
    request: HttpRequest, found: Callable[[], Run | None], *, etag: str
) -> Stored | HttpResponse:
    run = found()
    if run is None:
        raise Http404
    submission = run.kernel.submission
    private = submission.visibility == Visibility.PRIVATE
    if private and not may_see(request, submission.owner_id):
        raise Http404
    body = bundle(run, run.kernel.source.text, run.report)
    if private:
        return HttpResponse(body, content_type=ZIP, headers={"Cache-Control": "private, no-store"})
    return Stored(body=gzip.compress(body, 1, mtime=0), content_type=ZIP, etag=etag)
