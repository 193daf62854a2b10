"""Takes an archive in parts, for a submission that is larger than one request may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view, parser_classes
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.inputs import Input, validated
from leaderboard.api.outputs import ErrorOut, Shape
from leaderboard.models import Upload
from leaderboard.models.uploads import KEPT_FOR
from leaderboard.submissions.archives import MAX_UPLOAD_BYTES
from leaderboard.submissions.uploads import append, begin


class BytesParser(BaseParser):
    """Returns a body as it came. Its size was checked before."""

    media_type = "application/octet-stream"

    def parse(  # type: ignore[override]
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> bytes:
        return stream.read()


class UploadIn(Input):
    size_bytes = serializers.IntegerField(min_value=1, max_value=MAX_UPLOAD_BYTES)
    sha256 = serializers.RegexField(r"\A[0-9a-f]{64}\Z")


class OffsetIn(Input):
    offset = serializers.IntegerField(min_value=0, max_value=MAX_UPLOAD_BYTES)


class UploadOut(Shape):
    id = serializers.UUIDField()
    size_bytes = serializers.IntegerField()
    stored_bytes = serializers.IntegerField()
    part_bytes = serializers.IntegerField()
    expires_at = serializers.DateTimeField()


@extend_schema(
    request=UploadIn,
    responses={
        201: UploadOut,
        200: UploadOut,
        **dict.fromkeys((400, 401, 403, 429), ErrorOut),
    },
    operation_id="begin_upload",
)
@api_view(["POST"])
def uploads(request: Request) -> Response:
    """Begin an upload, or find the open one of the same bytes."""
    fields = validated(UploadIn, request)
    found, is_new = begin(_user(request), fields["size_bytes"], fields["sha256"])
    return _shown(found, 201 if is_new else 200)


@extend_schema(
    request={"application/octet-stream": OpenApiTypes.BINARY},
    responses={
        200: UploadOut,
        **dict.fromkeys((400, 401, 403, 404, 409, 413, 429, 503), ErrorOut),
    },
    parameters=[OpenApiParameter("offset", int, required=True)],
    operation_id="append_to_upload",
)
@api_view(["PUT"])
@parser_classes([BytesParser])
def upload(request: Request, upload_id: UUID) -> Response:
    """Append a part, which begins at `offset`."""
    given = OffsetIn(data=request.query_params.dict())
    given.is_valid(raise_exception=True)
    data = request.data if isinstance(request.data, bytes) else b""
    return _shown(append(_user(request), upload_id, given.validated_data["offset"], data), 200)


def _shown(found: Upload, status: int) -> Response:
    names = ("id", "size_bytes", "stored_bytes")
    told = {name: getattr(found, name) for name in names}
    told["part_bytes"] = settings.PKB_MAX_BODY_BYTES
    told["expires_at"] = found.created_at + KEPT_FOR
    return Response(UploadOut(told).data, status=status)


def _user(request: Request) -> AbstractBaseUser:
    """Return the user; the permission has seen to it that somebody sends this."""
    assert isinstance(request.user, AbstractBaseUser)
    return request.user
