"""Redirects addresses that are nearly right to those that are."""

from __future__ import annotations

from urllib.parse import quote

from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect
from django.shortcuts import get_object_or_404
from django.urls import get_script_prefix, resolve
from django.views.decorators.http import require_safe

from leaderboard.kit.links import url
from leaderboard.model_pages import model
from leaderboard.models import LanguageModel, Problem
from leaderboard.problem_pages import problem
from leaderboard.problem_pages.problems import address_of


@require_safe
def problem_page(
    request: HttpRequest, number: int, slug: str, form: str = "html"
) -> HttpResponseBase:
    """Serve the problem with this number, whatever the slug."""
    try:
        return problem.problem(request, number=number, slug=slug, form=form)
    except Http404:
        found = Problem.objects.filter(number=number).first()
        if found is None or found.slug == slug:
            raise
        return _led(request, address_of(found) + ("" if form == "html" else f".{form}"))


@require_safe
def problem_number(request: HttpRequest, number: int) -> HttpResponseBase:
    """Redirect to the problem with this number; raise Http404 where there is none."""
    return _led(request, address_of(get_object_or_404(Problem, number=number)))


@require_safe
def model_page(request: HttpRequest, slug: str, form: str = "html") -> HttpResponseBase:
    """Serve the model of this name, or lead to it from another of its names."""
    try:
        return model.model(request, slug=slug, form=form)
    except Http404:
        found = LanguageModel.objects.visible().called(slug)
        if found is None or found.slug == slug:
            raise
        return _led(request, url("model", found.slug) + ("" if form == "html" else f".{form}"))


@require_safe
def without_slash(request: HttpRequest, way: str) -> HttpResponseBase:
    """Redirect to the page without the slash; raise Http404 where there is none."""
    bare = way.strip("/")
    resolve(f"/{bare}")
    return _led(request, get_script_prefix() + quote(bare))


def _led(request: HttpRequest, address: str) -> HttpResponsePermanentRedirect:
    query = request.META.get("QUERY_STRING", "")
    return HttpResponsePermanentRedirect(f"{address}?{query}" if query else address)
