"""Badges as SVG."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, packed
from leaderboard.publishing import badges


@require_safe
def model(request: HttpRequest, slug: str) -> HttpResponse:
    return _badge(request, lambda: badges.of_model(slug))


@require_safe
def submission(request: HttpRequest, number: int) -> HttpResponse:
    return _badge(request, lambda: badges.of_submission(number))


def _badge(request: HttpRequest, told: Callable[[], tuple[str, str] | None]) -> HttpResponse:
    def make(*, etag: str) -> Stored:
        found = told()
        if found is None:
            raise Http404
        name, says = found
        head, tail = badges.parts(says)
        context = {
            **{"name": name, "head": head, "tail": tail, "parts": (head, tail)},
            "width": head.width + tail.width,
        }
        return packed(render_to_string("badge.svg", context), "svg", etag)

    return answer_public(request, request.path, make)
