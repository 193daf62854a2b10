"""Serves the search box, and says how other programs may ask it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Crumb, Page, Table, origin, public_page
from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.read_model.filters import count_phrase
from leaderboard.site_pages.search_index import FEWEST_DIGITS, LONGEST, MOST, SearchHit, find, sole

COLUMNS = ("kind", "title", "note", "url", "exact")


@require_safe
def search(request: HttpRequest, form: str = "html") -> HttpResponseBase:
    """Show what was found, or lead straight to the only thing that was asked for by name."""
    found = find(request.GET.get("q", "")[:LONGEST])
    only = sole(found)
    if only and form == "html":
        return redirect(only.url)
    return results(request, form=form, found=found)


@public_page("q", live=True)
def results(request: HttpRequest, found: list[SearchHit]) -> Page:
    asked = visible(request.GET.get("q", "")[:LONGEST])
    groups: dict[str, list[SearchHit]] = {}
    for one in found:
        groups.setdefault(one.kind, []).append(one)
    records = [vars(one) for one in found]
    return Page(
        template="search.html",
        section="search",
        context={
            "q": asked,
            "groups": [{"kind": kind, "found": rows} for kind, rows in groups.items()],
            "said": count_phrase(len(found), "result"),
            "most": MOST,
            "fewest_digits": FEWEST_DIGITS,
        },
        data={"q": asked, "results": records},
        table=Table(columns=COLUMNS, rows=[list(record.values()) for record in records]),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text="Search")),
    )


@require_safe
def opensearch(request: HttpRequest) -> HttpResponse:
    body = render_to_string("opensearch.xml", {"origin": origin(request)})
    return HttpResponse(body, content_type="application/opensearchdescription+xml")
