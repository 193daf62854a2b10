"""Serves the Atom feed of what is new: kernels that became the fastest for their problem, and
submissions on the board."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, When
from django.http import HttpRequest, HttpResponse
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.http import require_safe

from leaderboard.delivery.cells import ratio_text
from leaderboard.delivery.pages import Stored, answer_public, origin, packed
from leaderboard.kit.links import url
from leaderboard.kit.visible import visible
from leaderboard.models import LeaderboardRow, ProblemAggregate, Submission
from leaderboard.read_model.boards import SETTING_FIELDS, Setting
from leaderboard.read_model.filters import count_phrase
from leaderboard.read_model.setting import machine_in_words

MOST = 50
SUBMISSION = "run__kernel__submission"
SHOWN = {f"{SUBMISSION}__visibility": "public", f"{SUBMISSION}__moderation": "accepted"}
# Not plain conditions, for which SQLite would begin with all public submissions' kernels.
IS_RANKED = Case(When(**SHOWN, then=True), default=False)


class Record(NamedTuple):
    """Describes the fastest kernel for a problem in one setting."""

    problem_id: int
    problem__title: str
    best_speedup: float
    run_id: UUID
    run__finished_at: datetime
    run__kernel__submission__model__name: str
    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str
    placement: str


@dataclass(frozen=True, kw_only=True)
class FeedItem:
    """Describes an item; `model` is as its submitter wrote it."""

    kind: str
    what: str
    model: str
    says: str
    url: str
    at: datetime


def newest() -> list[FeedItem]:
    """Return the last MOST of both, newest first."""
    items = [*records(), *arrivals()]
    return sorted(items, key=lambda item: item.at, reverse=True)[:MOST]


def records() -> list[FeedItem]:
    """Return the newest of the kernels that are the fastest for a problem in their setting, and
    surely faster than the reference: with the whole interval above 1."""
    fast = {"best_speedup__gt": 0, "run__speedup_low__gt": 1}
    won = ProblemAggregate.objects.filter(IS_RANKED, problem__scored=True, **fast)
    rows = won.order_by("-run__finished_at", "pk").values_list(*Record._fields)[:MOST]
    return [_record(Record(*row)) for row in rows]


def _record(row: Record) -> FeedItem:
    setting = Setting(**{name: getattr(row, name) for name in SETTING_FIELDS})
    return FeedItem(
        kind="record",
        what=f"{row.problem_id}. {row.problem__title}: {ratio_text(row.best_speedup)} "
        f"on {machine_in_words(setting)}",
        model=row.run__kernel__submission__model__name,
        says=f"The fastest verified kernel for this problem on {setting}.",
        url=url("run", row.run_id),
        at=row.run__finished_at,
    )


def arrivals() -> list[FeedItem]:
    judged = LeaderboardRow.objects.filter(submission=OuterRef("pk"))
    ours = Submission.objects.ranked().filter(Exists(judged), model__is_baseline=False)
    named = ours.values_list("pk", "harness", "model__name", "k", "created_at")
    found = list(named.order_by("-pk")[:MOST])
    settings = settings_of([number for number, *_ in found])
    return [
        FeedItem(
            kind="submission",
            what=f"Submission {number}, {harness}",
            model=model,
            says=f"New on the leaderboard: {count_phrase(k, 'attempt')} a problem, "
            f"judged on {settings[number]}.",
            url=url("submission", number),
            at=at,
        )
        for number, harness, model, k, at in found
    ]


def settings_of(submissions: Iterable[int]) -> dict[int, Setting]:
    """Return the setting in which most of each submission was judged; one query."""
    rows = LeaderboardRow.objects.filter(submission__in=list(submissions))
    found: dict[int, Setting] = {}
    ordered = rows.order_by("-attempted", *SETTING_FIELDS)
    for number, *place in ordered.values_list("submission_id", *SETTING_FIELDS):
        found.setdefault(number, Setting(**dict(zip(SETTING_FIELDS, place, strict=True))))
    return found


@require_safe
def feed(request: HttpRequest) -> HttpResponse:
    def make(*, etag: str) -> Stored:
        return packed(as_atom(newest(), origin(request)), "atom", etag)

    return answer_public(request, request.path, make)


def as_atom(items: Iterable[FeedItem], site: str) -> str:
    """Return the XML, with characters that it forbids written out, or a name could spoil it."""
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
