"""Splits long lists of the API into pages, and describes these for its schema."""

from __future__ import annotations

from datetime import UTC
from functools import cache
from typing import Any

from django.db.models import Model, QuerySet
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.outputs import Output, Shape
from leaderboard.kit.request_error import RequestError

CURSOR = OpenApiParameter("cursor", str, description="From `next` or `previous` of another page.")

MINE = OpenApiParameter(
    "mine", int, enum=[0, 1], description="1: only what the token's owner handed in."
)


def is_mine(request: Request) -> bool:
    """Return whether only the caller's own are asked for. Raises RequestError for a caller without
    an account."""
    wanted = request.query_params.get("mine", "")
    if wanted not in ("", "0", "1"):
        raise RequestError("bad_query", "mine is neither 0 nor 1.", "Say mine=1, or leave it out.")
    if wanted == "1" and not request.user.is_authenticated:
        message, fix = "Nobody's own submissions are asked for.", "Send the token of an account."
        raise RequestError("not_authenticated", message, fix, status=401)
    return wanted == "1"


class NewestFirst(CursorPagination):
    page_size = 50
    ordering = ("-created_at", "-id")

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Refuse a cursor that no page of ours has linked to: it is to name a moment."""
        cursor = super().decode_cursor(request)
        position: Any = cursor and cursor.position
        if position is not None and not _is_moment(position):
            raise NotFound(self.invalid_cursor_message)
        return cursor


def _is_moment(text: str) -> bool:
    try:
        found = parse_datetime(text)
        return found is not None and found.tzinfo is not None and bool(found.astimezone(UTC))
    except (ValueError, OverflowError):
        return False


def page_of(
    request: Request,
    rows: QuerySet[Model],
    shape: type[Output],
    pages: CursorPagination | None = None,
) -> Response:
    pages = pages or NewestFirst()
    page = pages.paginate_queryset(rows, request)
    return pages.get_paginated_response(shape(page, many=True, context={"request": request}).data)


@cache
def page_shape(shape: type[Output]) -> Shape:
    """Return how the schema describes a page of such rows."""
    address: dict[str, Any] = {"allow_null": True}
    return inline_serializer(
        shape.__name__.removesuffix("Out") + "PageOut",
        {
            "next": serializers.URLField(**address),
            "previous": serializers.URLField(**address),
            "results": shape(many=True),
        },
    )
