"""Standings and published claims as rows of a board, within one setting."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypedDict, Unpack

from django.db.models import TextField
from django.db.models.functions import Cast
from django.urls import reverse

from leaderboard import scores
from leaderboard.cell_columns import unpack_cells, unpack_results
from leaderboard.failures import failure_mode
from leaderboard.models import PublishedResult, Standing, Trust
from leaderboard.models.summaries import StandingQuerySet
from leaderboard.scores import Attempts, Score
from leaderboard.standings import Totals, totals_of, unpack
from leaderboard.tallies import EVERYTHING, Cell, Narrow, Tally, cells_of, results_of

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

    `utilisation` is the median over the problems solved, of the fastest kernel of each; `backends`
    stand in the order of how many problems they are used for. `results` and `cells`, by problem,
    are unpacked when they are asked for.
    """

    model: str
    slug: str
    vendor: str
    harness: str
    trust: str
    url: str
    date: datetime | None
    score: Score
    modes: Mapping[str, int] = field(default_factory=dict)
    utilisation: float | None = None
    cost_usd: float | None = None
    baseline: bool = False
    claimed: bool = False
    backends: tuple[str, ...] = ()
    submission: int | None = None
    by_category: str = field(default="{}", repr=False)
    packed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    narrow: Narrow = EVERYTHING

    @functools.cached_property
    def results(self) -> tuple[Attempts, ...]:
        if self.narrow.is_by_category:
            return tuple(filter(self._is_asked, self._results))
        return results_of(self._tallies, self.narrow)

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        if self.narrow.is_by_category:
            return tuple(filter(self._is_asked, self._cells))
        return cells_of(self._tallies, self.narrow)

    def _is_asked(self, one: Attempts | Cell) -> bool:
        return self.narrow.category in ("", one.category)

    @property
    def _results(self) -> Iterable[Attempts]:
        packed = self.packed
        return unpack_results(packed["cells"], packed["speedups"]) if packed else ()

    @property
    def _cells(self) -> Iterable[Cell]:
        return unpack_cells(self.packed["cells"]) if self.packed else ()

    @functools.cached_property
    def _tallies(self) -> list[Tally]:
        return unpack(self.packed["tallies"]) if self.packed else []

    @functools.cached_property
    def _by_category(self) -> dict[str, Any]:
        return dict(json.loads(self.by_category))

    def score_in(self, category: str, scored: int) -> Score:
        """Of one category; an entry that was narrowed knows its own only."""
        found = self._by_category.get(category)
        if found is None:
            return scores.score([], scored, k=self.score.k)
        return scores.score_of(Totals(*found).summed, scored, k=self.score.k)


def known_settings() -> list[Setting]:
    """Settings with ranked results; hardened inputs first, then the most used."""
    found = Standing.objects.ranked().settings()
    settings = [Setting(**{k: v for k, v in row.items() if k != "problems"}) for row in found]
    return sorted(settings, key=lambda setting: setting.profile != HARDENED)


class Narrowing(TypedDict, total=False):
    """What a board is narrowed to.

    `category`, `backend`, `mechanism` and `nccl_free` say which kernels count: others are attempts
    that failed, and a submission without one of those is left out. `verified` leaves only what was
    judged here in isolation; `source` is the codebase that problems were taken from.
    """

    category: str
    harness: str
    backend: str
    mechanism: str
    nccl_free: bool
    verified: bool
    source: str
    submission: int


def judged(setting: Setting, scored: int, **narrowing: Unpack[Narrowing]) -> list[Entry]:
    """`scored` is how many problems the shares are of: those of the category, if one is given."""
    rows = Standing.objects.ranked().filter(**asdict(setting))
    if harness := narrowing.get("harness"):
        rows = rows.filter(submission__harness=harness)
    if submission := narrowing.get("submission"):
        rows = rows.filter(submission=submission)
    if narrowing.get("verified"):
        rows = rows.filter(submission__trust=Trust.VERIFIED)
    asked = Narrow(
        category=narrowing.get("category", ""),
        source=narrowing.get("source", ""),
        backend=narrowing.get("backend", ""),
        mechanism=narrowing.get("mechanism", ""),
        nccl_free=narrowing.get("nccl_free", False),
    )
    narrow = EVERYTHING if asked == EVERYTHING else asked
    packed = PLAIN if narrow.is_by_category else BY_KIND
    found = rows.order_by("submission_id").values(*FIELDS, *packed, text=BY_CATEGORY)
    entries = (_entry(row, scored, narrow) for row in found)
    return [entry for entry in entries if entry]


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
    "total",
)
# What is unpacked for whom: without and with filters on kernels.
PLAIN, BY_KIND = ("cells", "speedups"), ("tallies",)
# Seldom looked into, so it is not decoded for every row.
BY_CATEGORY = Cast("by_category", TextField())


def each_in_its_setting(standings: StandingQuerySet, scored: int) -> list[tuple[Setting, Entry]]:
    """Every submission once, in the setting where most of its problems were judged."""
    best: dict[int, Mapping[str, Any]] = {}
    for row in standings.values(*FIELDS, *PLAIN, "attempted", *SETTING_FIELDS, text=BY_CATEGORY):
        known = best.get(row["submission_id"])
        if known is None or row["attempted"] > known["attempted"]:
            best[row["submission_id"]] = row
    found = []
    for row in best.values():
        setting = Setting(**{name: row[name] for name in SETTING_FIELDS})
        if entry := _entry(row, scored, EVERYTHING):
            found.append((setting, entry))
    return found


def _entry(row: Mapping[str, Any], scored: int, narrow: Narrow) -> Entry | None:
    """None where no kernel counts."""
    totals, k = _totals(row, narrow), row["submission__k"]
    if totals is None:
        return None
    return Entry(
        model=row["submission__model__name"],
        slug=row["submission__model__slug"],
        vendor=row["submission__model__vendor"],
        harness=row["submission__harness"],
        trust=row["submission__trust"],
        url=f"{_submissions_url()}{row['submission_id']}",
        date=row["submission__created_at"],
        score=scores.score_of(totals.summed, scored, k=k),
        modes=totals.modes_found,
        backends=tuple(totals.backends),
        utilisation=totals.utilisation,
        cost_usd=row["submission__cost_usd"],
        baseline=row["submission__model__is_baseline"],
        submission=row["submission_id"],
        by_category=row["text"] if narrow is EVERYTHING else "{}",
        packed=row,
        narrow=narrow,
    )


def _totals(row: Mapping[str, Any], narrow: Narrow) -> Totals | None:
    if narrow is EVERYTHING:
        return Totals(*row["total"])
    if narrow.is_by_category:
        found = json.loads(row["text"]).get(narrow.category)
        return Totals(*found) if found else None
    return totals_of(unpack(row["tallies"]), row["submission__k"], narrow)


@functools.cache
def _submissions_url() -> str:
    """What stands before a submission's number: `reverse` costs more than the rest of a row."""
    return reverse("submission", args=[0]).removesuffix("0")


def modes_of(attempts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many attempts of a Summary ended in each failure mode, in PKB's words."""
    found = (failure_mode(a["verdict"], a.get("cause")) for a in attempts)
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
