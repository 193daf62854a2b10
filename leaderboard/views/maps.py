"""What crawlers ask for: which pages there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from django.contrib.sitemaps import Sitemap
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from leaderboard.links import url
from leaderboard.models import LanguageModel, Problem, Submission
from leaderboard.pages import Stored, answer_kept, origin, packed

PAGES = (
    *("board", "categories", "matrix", "compare", "problems", "hardware-list", "methodology"),
    *("snapshots", "status"),
)
MOST_SUBMISSIONS = 40_000


@dataclass(frozen=True, kw_only=True)
class Address:
    url: str
    changed: datetime | None = None


class Everything(Sitemap):  # type: ignore[type-arg]
    """Pages, categories, problems, models and ranked submissions; what these link to is found from
    there."""

    def __init__(self, site: str) -> None:
        self.protocol, self.domain = urlsplit(site)[:2]

    def get_domain(self, site: object = None) -> str:
        return self.domain

    def items(self) -> Sequence[Address]:
        problems = list(Problem.objects.values_list("number", "slug", "category"))
        categories = dict.fromkeys(category for *_, category in problems)
        models = LanguageModel.objects.visible().values_list("slug", flat=True)
        ranked = Submission.objects.ranked().values_list("pk", "created_at")[:MOST_SUBMISSIONS]
        return [
            *(Address(url=url(name)) for name in PAGES),
            *(Address(url=url("category", slug)) for slug in categories),
            *(Address(url=url("problem", number, slug)) for number, slug, _ in problems),
            *(Address(url=url("model", slug)) for slug in models),
            *(Address(url=url("submission", pk), changed=at) for pk, at in ranked),
        ]

    def location(self, item: Address) -> str:
        return item.url

    def lastmod(self, item: Address) -> datetime | None:
        return item.changed


@require_safe
def sitemap(request: HttpRequest) -> HttpResponse:
    """Addresses here are whole ones, so there is none where the site does not know its own."""
    site = origin(request)
    if not site:
        raise Http404

    def make(*, etag: str) -> Stored:
        found = {"urlset": Everything(site).get_urls()}
        return packed(render_to_string("sitemap.xml", found), "sitemap", etag)

    return answer_kept(request, request.path, make)


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    body = render_to_string("robots.txt", {"origin": origin(request)})
    return HttpResponse(body, content_type="text/plain; charset=utf-8")
