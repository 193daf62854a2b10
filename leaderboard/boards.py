"""Summary rows and published claims as rows of a board, within one setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.urls import reverse

from leaderboard import scores
from leaderboard.models import Kernel, PublishedResult, Summary
from leaderboard.scores import Attempts, Score

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
    """One row: a submission judged here, or a published claim, which has no results of its own."""

    model: str
    slug: str
    vendor: str
    harness: str
    trust: str
    url: str
    date: datetime | None
    score: Score
    results: tuple[Attempts, ...] = ()
    modes: Mapping[str, int] = field(default_factory=dict)
    claimed: bool = False
    submission: int | None = None


def known_settings() -> list[Setting]:
    """Settings with ranked results; hardened inputs first, then the most used."""
    found = Summary.objects.ranked().settings()
    settings = [Setting(**{k: v for k, v in row.items() if k != "problems"}) for row in found]
    return sorted(settings, key=lambda setting: setting.profile != HARDENED)


def judged(
    setting: Setting,
    scored: int,
    *,
    category: str = "",
    harness: str = "",
    backend: str = "",
) -> list[Entry]:
    """`scored` is how many problems the shares are of: those of the category, if one is given."""
    rows = Summary.objects.ranked().filter(**asdict(setting))
    if category:
        rows = rows.filter(problem__category=category)
    if harness:
        rows = rows.filter(submission__harness=harness)
    if backend:
        using = Kernel.objects.filter(backend=backend).values("submission")
        rows = rows.filter(submission__in=using)
    return entries_of(rows.order_by("submission_id", "problem_id").values(*FIELDS), scored)


FIELDS = (
    "submission_id",
    "submission__model__name",
    "submission__model__slug",
    "submission__model__vendor",
    "submission__harness",
    "submission__trust",
    "submission__created_at",
    "submission__k",
    "problem_id",
    "problem__category",
    "made",
    "attempts",
)


def entries_of(rows: Iterable[Mapping[str, Any]], scored: int) -> list[Entry]:
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["submission_id"], []).append(row)
    return [_entry(group, scored) for group in groups.values()]


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
        found.append((setting, _entry(own, scored)))
    return found


def _entry(rows: list[Mapping[str, Any]], scored: int) -> Entry:
    first = rows[0]
    results = tuple(attempts_of(row) for row in rows)
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
        modes=modes_of(attempt for row in rows for attempt in row["attempts"]),
        submission=first["submission_id"],
    )


def attempts_of(row: Mapping[str, Any]) -> Attempts:
    speedups = tuple(a["speedup"] for a in row["attempts"] if a["speedup"] is not None)
    return Attempts(
        problem=row["problem_id"],
        category=row["problem__category"],
        made=row["made"],
        speedups=speedups,
    )


def modes_of(attempts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many attempts ended in each failure mode, in PKB's words."""
    found = (scores.failure_mode(a["verdict"], a.get("cause")) for a in attempts)
    return dict(Counter(mode for mode in found if mode is not None))


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
