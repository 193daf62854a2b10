"""Serves texts for programs that read: `llms.txt`, statements and docs as Markdown."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, origin, packed
from leaderboard.models import Problem
from problems.statement import listed

DOCS = Path(settings.BASE_DIR) / "docs"
MARKDOWN = "text/markdown; charset=utf-8"


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """Serve what a language model should read of this site, one address a line."""

    def make(*, etag: str) -> Stored:
        rows = Problem.objects.order_by("number").values_list("number", "slug", "title")
        found = {"problems": list(rows), "docs": _titles(), "origin": origin(request)}
        return packed(render_to_string("llms.txt", found), "text", etag)

    return answer_public(request, request.path, make)


@require_safe
def statement(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """Serve a problem's statement, signature and reference. Raises Http404."""
    found = Problem.objects.filter(number=number, slug=slug).first()
    if found is None:
        raise Http404
    given = found.payload
    parts = (
        f"# Problem {number}: {found.title}",
        found.summary,
        listed(given["statement"]),
        f"## Signature\n\n```python\n{given['signature']}\n```",
        f"## Reference\n\n```python\n{given['reference_source'].rstrip()}\n```",
        f"Shapes, limits and costs: {origin(request)}/api/v1/problems/{slug}/prompt",
    )
    return HttpResponse("\n\n".join([*parts, ""]), content_type=MARKDOWN)


@require_safe
def doc(request: HttpRequest, name: str) -> HttpResponse:
    """Serve a file of docs/ as it is. Raises Http404."""
    if name not in _titles():
        raise Http404
    return HttpResponse((DOCS / f"{name}.md").read_bytes(), content_type=MARKDOWN)


@cache
def _titles() -> dict[str, str]:
    """Return the first line of each file of docs/, by its name."""
    paths = sorted(DOCS.glob("*.md"))
    return {path.stem: path.read_text().partition("\n")[0].lstrip("# ") for path in paths}
