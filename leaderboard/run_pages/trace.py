"""Serves what ran on each rank in the form of Chrome's tracing, which ui.perfetto.dev opens."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Sequence

import orjson
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, packed
from leaderboard.delivery.readers import refuse_strangers
from leaderboard.kit.json_types import JsonDict, Report
from leaderboard.models import Visibility
from leaderboard.read_model.withholding import told_run
from leaderboard.run_pages.run_figures import run_called


@require_safe
def of_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    make = functools.partial(_make, request, run_id)
    response = answer_public(request, request.path, make)
    name = f"pkb-run-{str(run_id)[:8]}.trace.json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _make(request: HttpRequest, run_id: uuid.UUID, *, etag: str) -> Stored | HttpResponse:
    named = run_called(str(run_id))
    submission = named.kernel.submission
    refuse_strangers(request, submission)
    run = told_run(request.user, named)
    events = list(events_of((run.report or {}).get("timelines", ())))
    if not events:
        raise Http404
    body = orjson.dumps({"traceEvents": events, "displayTimeUnit": "ns"}).decode()
    if submission.visibility == Visibility.PRIVATE or submission.withholds_source:
        kept = {"Cache-Control": "private, no-store"}
        return HttpResponse(body, content_type="application/json", headers=kept)
    return packed(body, "json", etag)


def events_of(timelines: Sequence[Report]) -> Iterator[JsonDict]:
    """Yield a name for each rank, then its events: a rank is a process, a stream a thread; all
    times are in microseconds."""
    for timeline in timelines:
        rank = timeline["rank"]
        named = {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
        yield from [named] if timeline["events"] else []
        for event in timeline["events"]:
            yield {
                "name": event["name"],
                "cat": event["kind"],
                "ph": "X",
                "ts": event["start_us"],
                "dur": event["duration_us"],
                "pid": rank,
                "tid": event["stream"],
                "args": {"bytes": event.get("nbytes")},
            }
