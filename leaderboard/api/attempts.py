"""Answers how an attempt went: step by step, and what was said in it."""

from __future__ import annotations

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.caching import versioned
from leaderboard.api.outputs import ErrorOut, Shape
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Submission
from leaderboard.read_model.steps import steps_of, transcript_of
from leaderboard.read_model.transcripts import parts_of
from leaderboard.read_model.withholding import is_told


class MadeOut(Shape):
    """Says what the attempt had used when a step was done, as its harness does; null: not told."""

    input_tokens = serializers.IntegerField(allow_null=True)
    cached_tokens = serializers.IntegerField(allow_null=True)
    output_tokens = serializers.IntegerField(allow_null=True)
    reasoning_tokens = serializers.IntegerField(allow_null=True)
    answers = serializers.IntegerField(allow_null=True)
    answers_without_usage = serializers.IntegerField(allow_null=True)
    judge_runs = serializers.IntegerField(allow_null=True)
    cost_usd = serializers.FloatField(allow_null=True)
    wall_s = serializers.FloatField(allow_null=True)
    ended = serializers.CharField(allow_null=True)


class StepRunOut(Shape):
    id = serializers.UUIDField()
    status = serializers.CharField()
    verdict = serializers.CharField(allow_null=True)
    cause = serializers.CharField(allow_null=True)
    speedup = serializers.FloatField(allow_null=True)
    speedup_low = serializers.FloatField(allow_null=True)
    speedup_high = serializers.FloatField(allow_null=True)
    hardware_id = serializers.CharField()
    world_size = serializers.IntegerField()
    size = serializers.CharField()
    dtype = serializers.CharField()
    profile = serializers.CharField()
    judge_version = serializers.CharField(allow_null=True)
    placement = serializers.CharField()


class StepOut(Shape):
    """Describes a step, its runs newest first. `older_task` says how the task differed that it was
    written for, if that is not the problem's of today: then it counts nowhere."""

    step = serializers.IntegerField()
    backend = serializers.CharField()
    languages = serializers.ListField(child=serializers.CharField())
    kernel = serializers.CharField()
    older_task = serializers.CharField(allow_null=True)
    made = MadeOut()
    runs = StepRunOut(many=True)


class MessageOut(Shape):
    role = serializers.CharField()
    text = serializers.CharField()
    continued = serializers.BooleanField()


class AttemptOut(Shape):
    submission = serializers.IntegerField()
    problem = serializers.IntegerField()
    attempt = serializers.IntegerField()
    steps = StepOut(many=True)
    transcript_bytes = serializers.IntegerField(allow_null=True)
    transcript_pages = serializers.IntegerField()
    transcript = MessageOut(many=True)
    withheld = serializers.BooleanField()


@extend_schema(
    responses={200: AttemptOut, **dict.fromkeys((400, 404), ErrorOut)},
    operation_id="read_attempt",
    parameters=[OpenApiParameter("page", int, description="Of the transcript, from 1.")],
)
@api_view(["GET"])
@versioned
def attempt(request: Request, address: str, problem: int, attempt: int) -> Response:
    """Describe an attempt; its transcript comes in pages of 64 KiB, but where it is `withheld`."""
    found = get_object_or_404(Submission.objects.at(address, request.user))
    steps = steps_of(found.pk, problem, attempt)
    if not steps:
        raise Http404
    kept = transcript_of(found.pk, problem, attempt)
    is_open = is_told(request.user, found)
    parts = parts_of(kept.text) if kept and is_open else []
    page = _page(request.query_params.get("page", "1"), max(1, len(parts)))
    made = {
        "submission": found.pk,
        "problem": problem,
        "attempt": attempt,
        "steps": [step.record for step in steps],
        "transcript_bytes": kept.size_bytes if kept else None,
        "transcript_pages": len(parts),
        "transcript": parts[page - 1] if parts else [],
        "withheld": not is_open,
    }
    return Response(AttemptOut(made).data)


def _page(text: str, last: int) -> int:
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= last:
        return int(text)
    raise RequestError("bad_query", "There is no such page.", f"Give a page from 1 to {last}.")
