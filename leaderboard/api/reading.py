"""Answers what anybody may read; a token shows its owner's private submissions as well."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from uuid import UUID

from django.conf import settings
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from leaderboard.api import outputs
from leaderboard.api.caching import versioned
from leaderboard.api.kernel_outputs import KernelOut
from leaderboard.api.paging import is_mine, page_of
from leaderboard.delivery.pages import DRAWN, BadQuery, Redirect, choice
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    DataVersion,
    Kernel,
    LanguageModel,
    Problem,
    Run,
    Submission,
    WorkerHost,
)
from leaderboard.models.submissions import SubmissionQuerySet
from leaderboard.read_model import baselines, problem_results, topologies
from leaderboard.read_model.board_query import board_query
from leaderboard.read_model.board_records import as_record
from leaderboard.read_model.columns import SORTS, placed, usual_sort
from leaderboard.read_model.filters import BOARD_PARAMETERS
from leaderboard.read_model.queue_counts import by_hardware
from leaderboard.read_model.withholding import closed_to, told_run
from problems.topology import records


@extend_schema(responses=outputs.ProblemOut(many=True), operation_id="list_problems")
@api_view(["GET"])
@versioned
def problems(request: Request) -> Response:
    rows = Problem.objects.defer("payload")
    return Response(outputs.ProblemOut(rows, many=True).data)


@extend_schema(
    responses=OpenApiResponse(
        dict,
        description="The problem's whole catalogue entry, whose `baselines` were measured alone, "
        "`judged_baselines`: what the reference took beside kernels, by setting, and "
        "`hardware_topology`: the text that a model is shown, by class of hardware.",
    ),
    operation_id="read_problem",
)
@api_view(["GET"])
@versioned
def problem(request: Request, name: str) -> Response:
    """Find a problem by number or slug."""
    found = problem_called(name)
    judged = baselines.reference_times(problem_results.totals_by_setting(found), None)
    told = {
        "judged_baselines": [one.record for one in judged],
        "hardware_topology": records(topologies.every_class(), found.payload),
    }
    return Response({**found.payload, **told})


def problem_called(name: str) -> Problem:
    """Return a problem by number or slug. Raises RequestError."""
    found = Problem.objects.called(name)
    if found is None:
        fix = "Give a number or a slug from /api/v1/problems."
        raise RequestError("unknown_problem", "There is no such problem.", fix, status=404)
    return found


@extend_schema(responses=outputs.CategoryOut(many=True), operation_id="list_categories")
@api_view(["GET"])
@versioned
def categories(request: Request) -> Response:
    rows = Problem.objects.values_list("category", "category_title", "scored")
    every = Counter((slug, title) for slug, title, _ in rows)
    scored = Counter((slug, title) for slug, title, is_scored in rows if is_scored)
    found = [
        {"slug": slug, "title": title, "problems": count, "scored": scored[slug, title]}
        for (slug, title), count in every.items()
    ]
    return Response(outputs.CategoryOut(found, many=True).data)


@extend_schema(responses=outputs.LanguageModelOut(many=True), operation_id="list_models")
@api_view(["GET"])
@versioned
def models(request: Request) -> Response:
    rows = LanguageModel.objects.visible()
    return Response(outputs.LanguageModelOut(rows, many=True).data)


@versioned
def submissions(request: Request) -> Response:
    listed = Submission.objects.listed_for(request.user)
    if is_mine(request):
        listed = Submission.objects.owned_by(request.user)
    rows = _submissions(listed)
    return page_of(request, rows, outputs.SubmissionOut)


@versioned
def submission(request: Request, address: str) -> Response:
    found = get_object_or_404(_submissions(Submission.objects.at(address, request.user)))
    return Response(outputs.SubmissionOut(found, context={"request": request}).data)


def _submissions(rows: SubmissionQuerySet) -> QuerySet[Submission]:
    own = Kernel.objects.filter(submission=OuterRef("pk")).order_by()
    count = Subquery(own.values("submission").annotate(n=Count("pk")).values("n"))
    return rows.select_related("model", "team").annotate(kernel_count=Coalesce(count, 0))


@extend_schema(responses=KernelOut, operation_id="read_kernel")
@api_view(["GET"])
@versioned
def kernel(request: Request, digest: str) -> Response:
    """Find a kernel by the SHA-256 of its source: where it is listed, else where it is not."""
    every = Submission.objects
    uses = Kernel.objects.filter(source=digest).defer("problem__payload")
    named = uses.select_related("submission__model", "problem", "source__found")
    rows = named.filter(submission__in=every.listed_for(request.user))
    rows = rows or named.filter(submission__in=every.reachable_by(request.user))
    if not rows:
        raise Http404
    context = {"request": request, "uses": rows, "closed": closed_to(request.user, rows)}
    return Response(KernelOut(rows[0].source, context=context).data)


@extend_schema(responses=outputs.RunOut, operation_id="read_run")
@api_view(["GET"])
def run(request: Request, run_id: UUID) -> Response:
    """Describe a run. Meant to be asked every 2 s while it is open: an ETag makes that cheap."""
    rows = Run.objects.reachable_by(request.user).with_names()
    ruled = rows.select_related("ruling", "kernel__source__ruling").defer("kernel__source__packed")
    found = get_object_or_404(ruled, pk=run_id)
    shown = told_run(request.user, found)
    data = dict(outputs.RunOut(shown, context={"request": request}).data)
    # The wait alone is worth an answer every ten seconds only.
    named = {**data, "waiting_s": data["waiting_s"] // 10}
    text = json.dumps(named, cls=JSONEncoder, sort_keys=True)
    etag = f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        response = Response(status=304)
    else:
        response = Response(data)
    response["ETag"], response["Cache-Control"] = etag, "no-cache"
    response["Vary"] = "Authorization"
    return response


@extend_schema(
    responses=OpenApiResponse(dict, description="The evaluator's whole report."),
    operation_id="read_report",
)
@api_view(["GET"])
def report(request: Request, run_id: UUID) -> Response:
    """Return the report with every trial, every timed call and the logs; without logs, evidence,
    lines and names of events, and `withheld` says so, where the source is withheld."""
    known = Run.objects.reachable_by(request.user).select_related("kernel__submission")
    found = told_run(request.user, get_object_or_404(known, pk=run_id)).report
    if found is None:
        fix = "Wait until the run's status is done."
        raise RequestError("no_report", "This run has no report.", fix, status=404)
    # A report never changes, but who may see it does.
    who = "public" if request.auth is None else "private"
    headers = {"Cache-Control": f"{who}, max-age=0, must-revalidate", "Vary": "Authorization"}
    return Response(found, headers=headers)


@extend_schema(
    responses=outputs.BoardOut,
    operation_id="read_leaderboard",
    parameters=[OpenApiParameter(name, str) for name in ("sort", *BOARD_PARAMETERS)],
)
@api_view(["GET"])
@versioned
def leaderboard(request: Request) -> Response:
    """Take the parameters of the page /, and say what it shows."""
    try:
        query = board_query(request._request)
        sort = choice(request._request, "sort", SORTS, usual_sort(query.setting))
    except BadQuery as error:
        raise RequestError("bad_query", error.message, error.fix) from None
    except Redirect:
        raise RequestError(
            "bad_query", f"{DRAWN} is for forms of pages.", "Leave it out."
        ) from None
    rows = placed([*query.judged(), *query.claimed(query.claims())], sort)
    setting = vars(query.setting) if query.setting else None
    return Response({"setting": setting, "rows": [as_record(row) for row in rows]})


@extend_schema(responses=outputs.StatusOut, operation_id="read_status")
@api_view(["GET"])
def status(request: Request) -> Response:
    """Say which version the site has, how long the queues are and which hosts are alive."""
    now = timezone.now()
    hosts = list(WorkerHost.objects.alive().values_list("queue", flat=True))
    columns = ("title", "device", "max_world_size")
    queues = [
        {
            **{name: row[name] for name in columns},
            "hardware": row["slug"],
            "queued": row["queued"],
            "running": row["running"],
            "hosts_alive": hosts.count(row["slug"]),
            "oldest_waiting_s": int((now - oldest).total_seconds()) if oldest else None,
        }
        for row in by_hardware().values(*columns, "slug", "queued", "running", "oldest")
        for oldest in [row["oldest"]]
    ]
    versions = {
        "software_version": settings.SOFTWARE_VERSION,
        "data_version": DataVersion.objects.current(),
    }
    return Response({**versions, "queues": queues})
