"""The Atom feed of records and new submissions."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.http import require_safe

from leaderboard.delivery.pages import Stored, answer_public, origin, packed
from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.publishing.news import Item, newest


@require_safe
def feed(request: HttpRequest) -> HttpResponse:
    def make(*, etag: str) -> Stored:
        return packed(as_atom(newest(), origin(request)), "atom", etag)

    return answer_public(request, request.path, make)


def as_atom(items: Iterable[Item], site: str) -> str:
    """Characters that XML forbids are written out, or a name could keep the feed from everybody."""
    made = Atom1Feed(
        title="PKB Leaderboard",
        subtitle="Kernels that became the fastest for their problem, and new submissions.",
        description="",
        link=f"{site}{url('board')}",
        feed_url=f"{site}{url('feed')}",
        language="en-gb",
    )
    for item in items:
        model = visible(item.model)
        made.add_item(
            title=f"{item.what} by {model}",
            link=f"{site}{item.url}",
            description=item.says,
            author_name=model,
            pubdate=item.at,
            updateddate=item.at,
            categories=(item.kind,),
            unique_id=f"{site}{item.url}",
        )
    return str(made.writeString("utf-8"))
