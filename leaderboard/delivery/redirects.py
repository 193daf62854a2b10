"""Redirects addresses that are nearly right to those that are."""

from __future__ import annotations

from urllib.parse import quote

from django.http import HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect
from django.urls import get_script_prefix, resolve
from django.views.decorators.http import require_safe


@require_safe
def without_slash(request: HttpRequest, way: str) -> HttpResponseBase:
    """Redirect to the page without the slash; raise Http404 where there is none."""
    bare = way.strip("/")
    resolve(f"/{bare}")
    return moved_to(request, get_script_prefix() + quote(bare))


def moved_to(request: HttpRequest, address: str) -> HttpResponsePermanentRedirect:
    """Redirect to an address for good, with the query of the request."""
    query = request.META.get("QUERY_STRING", "")
    return HttpResponsePermanentRedirect(f"{address}?{query}" if query else address)
