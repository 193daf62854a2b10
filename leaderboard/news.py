"""What is new: kernels that are the fastest for their problem, and submissions on the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from leaderboard.boards import SETTING_FIELDS, Setting
from leaderboard.cells import ratio_text
from leaderboard.links import url
from leaderboard.models import Run, Submission, Summary

MOST, RECENT = 50, 1000
RECORD_FIELDS = (
    *("problem_id", "problem__title", "best_run_id", "best_speedup", "best_run__finished_at"),
    *("submission__model__name", "submission__harness"),
)


@dataclass(frozen=True, kw_only=True)
class Item:
    """`model` is as its submitter wrote it."""

    kind: str
    what: str
    model: str
    says: str
    url: str
    at: datetime


def newest() -> list[Item]:
    """The last MOST of both, newest first."""
    items = [*records(), *arrivals()]
    return sorted(items, key=lambda item: item.at, reverse=True)[:MOST]


def records() -> list[Item]:
    """Kernels of the last RECENT runs that are the fastest in their setting, alone where several
    are equally fast."""
    ours = Summary.objects.ranked().filter(correct__gte=1, submission__model__is_baseline=False)
    place = {name: OuterRef(name) for name in ("problem", *SETTING_FIELDS)}
    as_fast = ours.filter(best_speedup__gte=OuterRef("best_speedup"), **place)
    first = Q(best_speedup__gt=OuterRef("best_speedup")) | Q(best_run__lt=OuterRef("best_run"))
    recent = Run.objects.order_by("-created_at", "-id").values("pk")[:RECENT]
    known = Summary.objects.filter(best_run__in=recent).order_by().values_list("pk", flat=True)
    best = ours.filter(~Exists(as_fast.filter(first)), pk__in=list(known))
    rows = best.order_by("-best_run__finished_at").values(*RECORD_FIELDS, *SETTING_FIELDS)
    return [_record(row) for row in rows[:MOST]]


def _record(row: Mapping[str, Any]) -> Item:
    setting = Setting(**{name: row[name] for name in SETTING_FIELDS})
    speedup = ratio_text(row["best_speedup"])
    return Item(
        kind="record",
        what=f"{row['problem_id']}. {row['problem__title']}: {speedup}",
        model=row["submission__model__name"],
        says=f"The fastest verified kernel for this problem on {setting}.",
        url=url("run", row["best_run_id"]),
        at=row["best_run__finished_at"],
    )


def arrivals() -> list[Item]:
    judged = Summary.objects.filter(submission=OuterRef("pk"), problem__scored=True)
    ours = Submission.objects.ranked().filter(Exists(judged), model__is_baseline=False)
    rows = ours.order_by("-pk").values_list("pk", "harness", "model__name", "k", "created_at")
    return [
        Item(
            kind="submission",
            what=f"Submission {number}, {harness}",
            model=model,
            says=f"New on the leaderboard: {k} attempts a problem.",
            url=url("submission", number),
            at=at,
        )
        for number, harness, model, k, at in rows[:MOST]
    ]
