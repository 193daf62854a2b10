"""Shows a team: its name, the members that agreed to be named, its public submissions."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from leaderboard.delivery.pages import Crumb, Page, Table, public_page
from leaderboard.kit.links import url
from leaderboard.models import Submission, Team, Visibility

COLUMNS = ("submission", "model", "harness", "moderation", "practice", "created_at")
MOST = 500


@public_page()
def team(request: HttpRequest, slug: str) -> Page:
    found = get_object_or_404(Team, slug=slug)
    shown = found.memberships.filter(is_shown=True, user__is_active=True)
    members = list(shown.values_list("user__username", flat=True))
    records = records_of(found)
    return Page(
        template="team.html",
        section="",
        context={
            "team": found,
            "members": members,
            "rows": [{**row, "url": url("submission", row["submission"])} for row in records],
        },
        data={"team": found.slug, "name": found.name, "members": members, "submissions": records},
        table=Table.of(COLUMNS, records),
        crumbs=(Crumb(text="Leaderboard", url=url("board")), Crumb(text=found.name)),
    )


def records_of(found: Team) -> list[dict[str, object]]:
    """Return the newest public submissions first."""
    public = Submission.objects.filter(team=found, visibility=Visibility.PUBLIC)
    names = ("pk", "model__name", "harness", "moderation", "is_practice", "created_at")
    rows = public.order_by("-pk").values_list(*names)[:MOST]
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]
