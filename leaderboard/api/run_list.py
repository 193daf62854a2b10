"""Lists runs, of which a site has so many that each question needs its own index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api import outputs
from leaderboard.api.paging import CURSOR, MINE, NewestFirst, is_mine, page_of, page_shape
from leaderboard.api.reading import problem_called
from leaderboard.kit.request_error import RequestError
from leaderboard.kit.unindexed import unindexed
from leaderboard.models import Hardware, Run, Status, Submission
from leaderboard.models.choices import PLACEMENTS, VERDICTS
from leaderboard.models.runs import RunQuerySet
from leaderboard.read_model.withholding import told_runs
from leaderboard.submissions.archives import shown

Filtered = Callable[..., RunQuerySet]

# The values that a run may have.
KNOWN: Mapping[str, Sequence[str]] = {
    "status": Status.values,
    "verdict": [value for value, _ in VERDICTS],
    "placement": [value for value, _ in PLACEMENTS],
}
# What a run that is not done ends with; no other run has that verdict.
ENDED_AS = {"infra_error": Status.FAILED, "cancelled": Status.CANCELLED}


class NewestTold(NewestFirst):
    """Reads the lines of the page as who asks may read them."""

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any]:
        return told_runs(request.user, super().paginate_queryset(queryset, request, view) or [])


class NewestOfFew(NewestFirst):
    """Sorts them by what an index holds, then reads the lines of the page."""

    ordering = ("-asked", "-id")

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any]:
        asked = queryset.annotate(asked=unindexed("created_at"))
        places: QuerySet[Any, dict[str, Any]] = asked.values("id", "asked")
        named = [row["id"] for row in super().paginate_queryset(places, request, view) or ()]
        found = _lines(Run.objects.all()).in_bulk(named)
        return told_runs(request.user, [found[one] for one in named])


@extend_schema(
    responses=page_shape(outputs.RunLineOut),
    operation_id="list_runs",
    parameters=[
        CURSOR,
        MINE,
        OpenApiParameter("problem", str, description="Number or slug."),
        OpenApiParameter("submission", int),
        OpenApiParameter("placement", str),
        OpenApiParameter("status", str),
        OpenApiParameter("verdict", str),
    ],
)
@api_view(["GET"])
def runs(request: Request) -> Response:
    rows = _lines(Run.objects.listed_for(request.user))
    wanted = request.query_params
    _refuse_unknown(wanted)
    if own := is_mine(request):
        rows = rows.filter(kernel__submission__in=Submission.objects.owned_by(request.user))
    if "problem" in wanted:
        rows = rows.filter(kernel__problem=problem_called(wanted["problem"]))
    if "submission" in wanted:
        rows = rows.filter(kernel__submission=_number(wanted["submission"], "submission"))
    is_few = own or not {"problem", "submission"}.isdisjoint(wanted)
    narrow: Filtered = RunQuerySet.few if is_few else RunQuerySet.filter
    if "placement" in wanted:
        rows = narrow(rows, placement=wanted["placement"])
    ended = _ended(rows, narrow, wanted.get("status"), wanted.get("verdict"))
    return page_of(request, ended, outputs.RunLineOut, NewestOfFew() if is_few else NewestTold())


def _refuse_unknown(wanted: Mapping[str, str]) -> None:
    """Raise RequestError naming each parameter, and each value of a list, that no run has."""
    names = (*KNOWN, "problem", "submission", "mine", "cursor")
    fields = {
        name: "There is no such filter. Use " + ", ".join(names) + "."
        for name in wanted
        if name not in names
    }
    for name, known in KNOWN.items():
        if name in wanted and wanted[name] not in known:
            fields[name] = f"There is no such {name}. Use {', '.join(known)}."
    if fields:
        shown_fields = {shown(name): text for name, text in fields.items()}
        message, fix = "Some filters are unknown.", "Mend the filters named."
        raise RequestError("bad_query", message, fix, fields=shown_fields)


def _lines(rows: RunQuerySet) -> RunQuerySet:
    return rows.with_names().only(*outputs.RUN_LINE_READS)


def _ended(
    rows: RunQuerySet, narrow: Filtered, status: str | None, verdict: str | None
) -> RunQuerySet:
    """Return those with this status and this verdict: one may tell the other."""
    if verdict is None:
        verdict = next((each for each, ended in ENDED_AS.items() if ended == status), None)
    if verdict is not None:
        agree = status in (None, ENDED_AS.get(verdict, Status.DONE))
        return narrow(rows, verdict=verdict) if agree else rows.none()
    if status not in (None, Status.DONE):
        # Few are, and an index that begins with the hardware knows which: this says nothing else.
        rows = rows.filter(hardware__in=Hardware.objects.values("pk"))
    return rows.filter(status=status) if status is not None else rows


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise RequestError("bad_query", f"{name} is not a number.", f"Give the id of a {name}.")
    return int(text)
