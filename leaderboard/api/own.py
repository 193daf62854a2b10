"""Does to a submission what its owner may, beside editing it: publish it, withdraw it, have it
judged again."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import outputs
from leaderboard.api.inputs import WithdrawIn, validated
from leaderboard.api.outputs import Shape
from leaderboard.api.reading import submission
from leaderboard.models import Submission, Visibility
from leaderboard.runs import withdrawing
from leaderboard.submissions import editing, rejudging

REFUSALS = dict.fromkeys((400, 401, 403, 404, 409, 429), outputs.ErrorOut)


class RerunOut(Shape):
    """Says how many runs were queued, and by reason the problems of what was not."""

    runs = serializers.IntegerField()
    left_out = serializers.DictField(child=serializers.ListField(child=serializers.IntegerField()))


@extend_schema(
    request=None, responses={200: outputs.SubmissionOut, **REFUSALS}, operation_id="publish"
)
@api_view(["POST"])
def publish(request: Request, number: int) -> Response:
    """Make a hidden submission public, where it may be: one whose embargo has not ended yet, one
    that no judge has begun with, or practice."""
    found, owner = _own(request, number)
    editing.edit(found, owner, {"visibility": Visibility.PUBLIC})
    return submission(request, str(number))


@extend_schema(
    request=WithdrawIn, responses={200: outputs.SubmissionOut, **REFUSALS}, operation_id="withdraw"
)
@api_view(["POST"])
def withdraw(request: Request, number: int) -> Response:
    """Take a submission out of every ranking, for good; its results stay where they are."""
    found, owner = _own(request, number)
    withdrawing.withdraw(found, owner, validated(WithdrawIn, request).get("reason", ""))
    return submission(request, str(number))


@extend_schema(request=None, responses={200: RerunOut, **REFUSALS}, operation_id="rerun")
@api_view(["POST"])
def rerun(request: Request, number: int) -> Response:
    """Queue again what is stale, and what ended without a result."""
    plan = rejudging.rerun(*_own(request, number))
    return Response(RerunOut({"runs": len(plan.ready), "left_out": plan.left_out}).data)


def _own(request: Request, number: int) -> tuple[Submission, AbstractBaseUser]:
    """Return the submission and its owner, who sends this. Raises Http404, PermissionDenied."""
    found = get_object_or_404(Submission.objects.at(str(number), request.user))
    assert isinstance(request.user, AbstractBaseUser)
    if not editing.is_own(request.user, found):
        raise PermissionDenied("Only the submission's owner may do that.")
    return found, request.user
