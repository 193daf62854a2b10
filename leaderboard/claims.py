"""What others published of models, as rows of a board."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from leaderboard import scores
from leaderboard.boards import Entry
from leaderboard.links import url
from leaderboard.models import PublishedResult
from leaderboard.prepared import ask, given
from leaderboard.scores import Score


def published(*, category: str | None = None, harness: str = "") -> list[PublishedResult]:
    """Claims for a category, or for all problems."""
    where = {"category": category, "harness": harness}
    known = {name: value for name, value in where.items() if value}
    return ask(_published, tuple(known), **known)


def _published(where: Sequence[str]) -> QuerySet[PublishedResult]:
    rows = PublishedResult.objects.select_related("model", "publication")
    rows = rows.defer("publication__payload").filter(**given(where))
    return rows if "category" in where else rows.filter(category=None)


def claim(result: PublishedResult) -> Entry:
    """k is 3 where the claim has a number for three samples; speedups were not published."""
    n = result.problems
    share = result.correct_at_1 / n
    at_3, fast_at_3 = result.correct_at_3, result.fast_at_3
    return Entry(
        model=result.model.name,
        slug=result.model.slug,
        vendor=result.model.vendor,
        harness=result.harness,
        trust="published",
        url=url("model", result.model.slug),
        date=result.publication.date,
        claimed=True,
        score=Score(
            scored=n,
            attempted=n,
            correct=result.correct_at_1 if at_3 is None else at_3,
            k=1 if at_3 is None else 3,
            p=1.0,
            pass_at_1=share,
            pass_at_1_interval=scores.wilson_interval(share, n),
            pass_at_k=share if at_3 is None else at_3 / n,
            fast_at_1=result.fast_at_1 / n,
            fast_at_k=result.fast_at_1 / n if fast_at_3 is None else fast_at_3 / n,
            geometric_mean=None,
        ),
    )
