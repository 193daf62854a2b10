"""Does what a token with the scope `submit` may: hand in, edit, cancel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.core.files import File
from django.http import QueryDict
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import api_view, parser_classes
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import outputs
from leaderboard.api.accepted import AcceptedOut
from leaderboard.api.inputs import EditIn, SubmissionIn, Validated, valid_part, validated
from leaderboard.api.paging import CURSOR, MINE, page_shape
from leaderboard.api.parsing import ObjectParser
from leaderboard.api.reading import submission, submissions
from leaderboard.kit.permissions import END_RUNS, may
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Harness, Run, Submission, Visibility
from leaderboard.runs import evaluation
from leaderboard.submissions import editing, uploads
from leaderboard.submissions.intake import (
    Accepted,
    Metadata,
    accept,
    accepted_before,
    faults_beside,
)
from leaderboard.submissions.sources import HandedIn, kernels_in
from leaderboard.submissions.target_selection import TargetRequest

TARGET_FIELDS = ("device", "hardware", "world_size", "size", "dtype", "profile", "placement")


@extend_schema(
    methods=["POST"],
    request={"application/json": SubmissionIn, "multipart/form-data": SubmissionIn},
    responses={
        201: AcceptedOut,
        200: AcceptedOut,
        **dict.fromkeys((400, 401, 403, 409, 413, 429), outputs.ErrorOut),
    },
    parameters=[
        OpenApiParameter(
            "Idempotency-Key",
            str,
            OpenApiParameter.HEADER,
            description="The same key with the same request answers 200 and stores nothing new.",
        )
    ],
    operation_id="submit",
)
@extend_schema(
    methods=["GET"],
    responses=page_shape(outputs.SubmissionOut),
    parameters=[CURSOR, MINE],
    operation_id="list_submissions",
)
@api_view(["GET", "POST"])
@parser_classes([ObjectParser, MultiPartParser])
def submissions_or_submit(request: Request) -> Response:
    if request.method != "POST":
        return submissions(request)
    fields = _fields(request)
    if isinstance(request.data, QueryDict) and "source" in fields:
        # A form is decoded with replacements, so a source in it need not be the one that was sent.
        raise ValidationError({"archive": ["A form carries an archive; send one source as JSON."]})
    key = _idempotency_key(request)
    if "upload" in fields:
        accepted = _accepted_upload(_user(request), fields, key)
    else:
        accepted = _accepted(_user(request), fields, kernels_in(fields), key)
    body = AcceptedOut(accepted, context={"request": request}).data
    return Response(body, status=201 if accepted.is_new else 200)


def _accepted(
    user: AbstractBaseUser, fields: Validated, handed_in: HandedIn, key: str | None
) -> Accepted:
    return accept(user, _metadata(fields), handed_in, _target(fields), idempotency_key=key)


def _accepted_upload(user: AbstractBaseUser, fields: Validated, key: str | None) -> Accepted:
    """Accept a submission whose archive came in parts. An upload is used once, or once more by the
    same request with the same key; one that cannot be read is deleted."""
    upload = uploads.upload_of(user, fields["upload"])
    said = json.dumps(fields, sort_keys=True, default=str)
    asked = hashlib.sha256(said.encode()).hexdigest()
    if (earlier := upload.submission) is not None:
        if key and (earlier.idempotency_key, upload.asked) == (key, asked):
            return accepted_before(earlier)
        raise uploads.used(upload)
    upload.asked = asked
    with uploads.whole(upload) as file:
        handed_in = kernels_in({**fields, "archive": File(file)})
        if handed_in.fault:
            upload.delete()
        accepted = _accepted(user, fields, replace(handed_in, upload=upload), key)
    if not accepted.is_new:
        upload.mark_used(accepted.submission)
    return accepted


def _fields(request: Request) -> Validated:
    """Return the fields of a submission. Raises ValidationError that names what is wrong with
    their form and, as far as they can be read, with what they say."""
    try:
        return validated(SubmissionIn, request)
    except ValidationError as error:
        part = valid_part(SubmissionIn, request)
        told = faults_beside(
            _user(request),
            _metadata({"harness": Harness.AGENTIC, **part}),
            part,
            _target(part),
        )
        raise ValidationError({**told, **dict(error.detail)}) from None  # type: ignore[arg-type]


def _target(fields: Validated) -> TargetRequest:
    return TargetRequest(**{name: fields[name] for name in TARGET_FIELDS if name in fields})


@extend_schema(
    methods=["PATCH"],
    request=EditIn,
    responses={
        200: outputs.SubmissionOut,
        **dict.fromkeys((400, 401, 403, 404, 409, 429), outputs.ErrorOut),
    },
    operation_id="edit_submission",
)
@extend_schema(methods=["GET"], responses=outputs.SubmissionOut, operation_id="read_submission")
@api_view(["GET", "PATCH"])
def submission_or_edit(request: Request, address: str) -> Response:
    """Let its owner, and staff, change what it says of itself: never its kernels and results."""
    if request.method == "PATCH":
        found = get_object_or_404(Submission.objects.at(address, request.user))
        if not editing.may_edit(request.user, found):
            raise PermissionDenied("Only the submission's owner may edit it.")
        editing.edit(found, _user(request), validated(EditIn, request))
    return submission(request, address)


def _user(request: Request) -> AbstractBaseUser:
    """Return the user; the permission has seen to it that somebody sends this."""
    assert isinstance(request.user, AbstractBaseUser)
    return request.user


def _metadata(fields: Validated) -> Metadata:
    is_practice = fields.get("practice", False)
    is_hidden = is_practice or "public_from" in fields
    usual = Visibility.PRIVATE if is_hidden else Visibility.PUBLIC
    return Metadata(
        model=fields.get("model", ""),
        harness=Harness(fields["harness"]),
        vendor=fields.get("vendor", ""),
        step_budget=fields.get("step_budget"),
        cost_usd=fields.get("cost_usd"),
        visibility=Visibility(fields.get("visibility", usual)),
        is_practice=is_practice,
        public_from=fields.get("public_from"),
        notes=fields.get("notes", ""),
        link=fields.get("link", ""),
        licence=fields.get("licence", ""),
        withholds_source=fields.get("withholds_source", False),
        team=fields.get("team", ""),
    )


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= 200 and key.isascii() and key.isprintable()):
        raise RequestError(
            "bad_idempotency_key",
            "The Idempotency-Key is not 1 to 200 printable ASCII characters.",
            "Use a fresh UUID for each new request.",
            fields={"Idempotency-Key": "1 to 200 printable ASCII characters"},
        )
    return key


@extend_schema(request=None, responses=outputs.RunOut, operation_id="cancel_run")
@api_view(["POST"])
def cancel(request: Request, run_id: UUID) -> Response:
    """End a run: for the submission's owner while the run waits, and for staff with that
    permission.

    Who could end a run that goes badly would be judged by the lucky ones.
    """
    found = get_object_or_404(Run.objects.reachable_by(request.user), pk=run_id)
    may_end = may(request.user, END_RUNS)
    if not may_end and not editing.is_own(request.user, found.kernel.submission):
        raise PermissionDenied("Only the submission's owner may cancel its runs.")
    evaluation.cancel(found, even_running=may_end)
    row = Run.objects.with_names().get(pk=run_id)
    return Response(outputs.RunOut(row, context={"request": request}).data)
