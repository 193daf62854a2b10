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

CURSOR = OpenApiParameter("cursor", str, description="From `next` or `previous` of another page.")


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
