"""Reads what others published of models, as rows of a board."""

from __future__ import annotations

import functools
from typing import NamedTuple

import orjson
from django.db.models import TextField
from django.db.models.functions import Cast

from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.links import url
from leaderboard.metrics import intervals
from leaderboard.metrics.scores import Score
from leaderboard.models import PublishedResult
from leaderboard.read_model.boards import BoardRow

SAID = (
    *("publication_id", "publication__date", "publication__citation"),
    *("model__name", "model__slug", "model__vendor", "harness", "category"),
    *("problems", "correct_at_1", "correct_at_3", "fast_at_1", "fast_at_3"),
)
# The key in a publication's file of speedups over size.
SIZE_CURVES = "net_new_kernels_read_off_plots"


class Claim(NamedTuple):
    """Holds a PublishedResult, whose category None is the total. `payload` is the JSON of what its
    publication says besides."""

    publication: int
    date: str | None
    citation: str
    model: str
    slug: str
    vendor: str
    harness: str
    category: str | None
    problems: int
    correct_at_1: int
    correct_at_3: int | None
    fast_at_1: int
    fast_at_3: int | None
    payload: str

    @property
    def publication_says(self) -> JsonObject:
        return _decoded(self.payload)


@functools.lru_cache(maxsize=4)
def _decoded(payload: str) -> JsonObject:
    found: JsonObject = orjson.loads(payload)
    return found


def published(*, category: str | None, harness: str = "") -> list[Claim]:
    """Return the claims for a category; None are those for all problems."""
    return _claims(category=category, **({"harness": harness} if harness else {}))


def every_claim(*, harness: str = "", model: int | None = None) -> list[Claim]:
    """Return the claims for every category, and for all problems."""
    where = {"harness": harness, "model": model}
    return _claims(**{name: value for name, value in where.items() if value})


def _claims(**where: str | int | None) -> list[Claim]:
    rows = PublishedResult.objects.filter(**where)
    said = rows.values_list(*SAID, Cast("publication__payload", TextField()))
    return list(map(Claim._make, said))


def entry_of(claim: Claim) -> BoardRow:
    """Return a claim as a row; k is 3 where it has a number for three samples. Speedups were not
    published."""
    n = claim.problems
    share = claim.correct_at_1 / n
    at_3, fast_at_3 = claim.correct_at_3, claim.fast_at_3
    return BoardRow(
        model=claim.model,
        slug=claim.slug,
        vendor=claim.vendor,
        harness=claim.harness,
        trust="published",
        url=url("model", claim.slug),
        date=claim.date,
        claimed=True,
        where=str(claim.publication_says.get("setting", {}).get("hardware", "")),
        score=Score(
            scored=n,
            attempted=n,
            correct=claim.correct_at_1 if at_3 is None else at_3,
            k=1 if at_3 is None else 3,
            p=1.0,
            pass_at_1=share,
            pass_at_1_interval=intervals.wilson_interval(share, n),
            pass_at_k=share if at_3 is None else at_3 / n,
            fast_at_1=claim.fast_at_1 / n,
            fast_at_k=claim.fast_at_1 / n if fast_at_3 is None else fast_at_3 / n,
            geometric_mean=None,
        ),
    )
