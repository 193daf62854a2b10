"""Summary rows and published claims as rows of a board, within one setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypedDict, Unpack

from django.urls import reverse

from leaderboard import scores
from leaderboard.models import PublishedResult, Summary, Trust
from leaderboard.scores import Attempts, Score
from leaderboard.tallies import (
    EVERYTHING,
    Cell,
    Narrow,
    cells_of,
    modes_of,
    results_of,
    tallies_of,
    utilisation_of,
)

__all__ = [
    "Cell",
    "Entry",
    "Narrowing",
    "Setting",
    "claim",
    "judged",
    "known_settings",
    "published",
]

HARDENED = "hardened"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What must be equal for two times, or two verdicts, to be compared."""

    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str

    def __str__(self) -> str:
        return (
            f"{self.hardware_id}, {self.world_size} ranks, {self.size}, {self.dtype}, "
            f"{self.profile} inputs, judge {self.judge_version}"
        )


SETTING_FIELDS = tuple(Setting.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row: a submission judged here, or a published claim, which has no results of its own.

    `utilisation` is the median over the problems solved, of the fastest kernel of each.
    """

    model: str
    slug: str
    vendor: str
    harness: str
    trust: str
    url: str
    date: datetime | None
    score: Score
    results: tuple[Attempts, ...] = ()
    cells: tuple[Cell, ...] = ()
    modes: Mapping[str, int] = field(default_factory=dict)
    utilisation: float | None = None
    cost_usd: float | None = None
    baseline: bool = False
    claimed: bool = False
    submission: int | None = None


def known_settings() -> list[Setting]:
    """Settings with ranked results; hardened inputs first, then the most used."""
    found = Summary.objects.ranked().settings()
    settings = [Setting(**{k: v for k, v in row.items() if k != "problems"}) for row in found]
    return sorted(settings, key=lambda setting: setting.profile != HARDENED)


class Narrowing(TypedDict, total=False):
    """What a board is narrowed to.

    `category`, `backend`, `mechanism` and `nccl_free` say which kernels count: others are attempts
    that failed, and a submission without one of those is left out. `verified` leaves only what was
    judged here in isolation; `source` is `judged` or `published`.
    """

    category: str
    harness: str
    backend: str
    mechanism: str
    nccl_free: bool
    verified: bool
    source: str


def judged(setting: Setting, scored: int, **narrowing: Unpack[Narrowing]) -> list[Entry]:
    """`scored` is how many problems the shares are of: those of the category, if one is given."""
    if narrowing.get("source") == "published":
        return []
    rows = Summary.objects.ranked().filter(**asdict(setting))
    if harness := narrowing.get("harness"):
        rows = rows.filter(submission__harness=harness)
    if narrowing.get("verified"):
        rows = rows.filter(submission__trust=Trust.VERIFIED)
    narrow = Narrow(
        category=narrowing.get("category", ""),
        backend=narrowing.get("backend", ""),
        mechanism=narrowing.get("mechanism", ""),
        nccl_free=narrowing.get("nccl_free", False),
    )
    found = rows.order_by("submission_id", "problem_id").values(*FIELDS)
    return entries_of(found, scored, narrow)


FIELDS = (
    "submission_id",
    "submission__model__name",
    "submission__model__slug",
    "submission__model__vendor",
    "submission__model__is_baseline",
    "submission__harness",
    "submission__trust",
    "submission__created_at",
    "submission__k",
    "submission__cost_usd",
    "problem_id",
    "problem__category",
    "attempts",
)


def entries_of(
    rows: Iterable[Mapping[str, Any]], scored: int, narrow: Narrow = EVERYTHING
) -> list[Entry]:
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["submission_id"], []).append(row)
    entries = [_entry(group, scored, narrow) for group in groups.values()]
    return [entry for entry in entries if entry.results]


def each_in_its_setting(
    rows: Iterable[Mapping[str, Any]], scored: int
) -> list[tuple[Setting, Entry]]:
    """Every submission once, in the setting where most of its problems were judged.

    `rows` hold FIELDS and SETTING_FIELDS.
    """
    groups: dict[int, dict[Setting, list[Mapping[str, Any]]]] = {}
    for row in rows:
        setting = Setting(**{name: row[name] for name in SETTING_FIELDS})
        groups.setdefault(row["submission_id"], {}).setdefault(setting, []).append(row)
    found = []
    for by_setting in groups.values():
        setting, own = max(by_setting.items(), key=lambda pair: len(pair[1]))
        found.append((setting, _entry(own, scored, EVERYTHING)))
    return found


def _entry(rows: list[Mapping[str, Any]], scored: int, narrow: Narrow) -> Entry:
    first = rows[0]
    tallies = [
        tally
        for row in rows
        for tally in tallies_of(row["problem_id"], row["problem__category"], row["attempts"])
    ]
    results, cells = results_of(tallies, narrow), cells_of(tallies, narrow)
    return Entry(
        model=first["submission__model__name"],
        slug=first["submission__model__slug"],
        vendor=first["submission__model__vendor"],
        harness=first["submission__harness"],
        trust=first["submission__trust"],
        url=reverse("submission", args=[first["submission_id"]]),
        date=first["submission__created_at"],
        score=scores.score(results, scored, k=first["submission__k"]),
        results=results,
        cells=cells,
        modes=modes_of(tallies, narrow),
        utilisation=utilisation_of(cells),
        cost_usd=first["submission__cost_usd"],
        baseline=first["submission__model__is_baseline"],
        submission=first["submission_id"],
    )


def published(*, category: str | None = None, harness: str = "") -> list[PublishedResult]:
    """Claims for a category, or for all problems."""
    rows = PublishedResult.objects.filter(category=category).select_related("model", "publication")
    return list(rows.filter(harness=harness) if harness else rows)


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
        url=reverse("model", args=[result.model.slug]),
        date=None,
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
