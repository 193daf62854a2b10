"""Tells crawlers which pages there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from django.contrib.sitemaps import Sitemap
from django.db.models import Value
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, origin, packed
from leaderboard.kit.links import url
from leaderboard.models import Hardware, LanguageModel, Problem, Submission
from leaderboard.read_model import calibration

PAGES = (
    *(
        "board",
        "categories",
        "matrix",
        "profiles",
        "mechanisms",
        "beats-nccl",
        "compare",
        "problems",
    ),
    *("environment", "hardware-list", "methodology", "snapshots", "status"),
)
MOST_SUBMISSIONS = 40_000


@dataclass(frozen=True, kw_only=True)
class Address:
    url: str
    changed: datetime | None = None


class Everything(Sitemap):  # type: ignore[type-arg]
    """Lists pages, categories, problems, models, hardware and ranked submissions; what these link
    to is found from there."""

    def __init__(self, site: str) -> None:
        self.protocol, self.domain = urlsplit(site)[:2]

    def get_domain(self, site: object = None) -> str:
        return self.domain

    def items(self) -> Sequence[Address]:
        problems = list(Problem.objects.values_list("number", "slug", "category"))
        categories = dict.fromkeys(category for *_, category in problems)
        models, hardware = models_and_hardware()
        ranked = Submission.objects.ranked().values_list("pk", "created_at")[:MOST_SUBMISSIONS]
        return [
            *(Address(url=url(name)) for name in PAGES),
            *(Address(url=url("category", slug)) for slug in categories),
            *(Address(url=url("problem", number, slug)) for number, slug, _ in problems),
            *(Address(url=url("model", slug)) for slug in models),
            *(Address(url=url("hardware", slug)) for slug in hardware),
            *(Address(url=url("submission", pk), changed=at) for pk, at in ranked),
        ]

    def location(self, item: Address) -> str:
        return item.url

    def lastmod(self, item: Address) -> datetime | None:
        return item.changed


def models_and_hardware() -> tuple[list[str], list[str]]:
    """Return their slugs, by one query; hardware that only was measured has a page too."""
    models = LanguageModel.objects.visible().order_by().values_list("slug", Value(0))
    hosts = Hardware.objects.order_by().values_list("slug", Value(1))
    slugs: tuple[list[str], list[str]] = ([], [])
    for slug, kind in models.union(hosts, all=True):
        slugs[kind].append(slug)
    return sorted(slugs[0]), sorted({*slugs[1], *calibration.of_release()})


@require_safe
def sitemap(request: HttpRequest) -> HttpResponse:
    """Serve the site map; its addresses are whole, so none where the site knows not its own."""
    site = origin(request)
    if not site:
        raise Http404

    def make(*, etag: str) -> Stored:
        found = {"urlset": Everything(site).get_urls()}
        return packed(render_to_string("sitemap.xml", found), "sitemap", etag)

    return answer_public(request, request.path, make)


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    body = render_to_string("robots.txt", {"origin": origin(request)})
    return HttpResponse(body, content_type="text/plain; charset=utf-8")
