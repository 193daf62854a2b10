"""Standings and published claims as rows of a board, within one setting."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack

from django.db.models import QuerySet, Subquery, TextField
from django.db.models.functions import Cast
from django.urls import reverse

from leaderboard.kit.memoised import digest, once
from leaderboard.kit.prepared import ask, given
from leaderboard.metrics import scores
from leaderboard.metrics.scores import Score
from leaderboard.metrics.tallies import EVERYTHING, Cell, Narrow
from leaderboard.models import ProblemStanding, Standing, Trust
from leaderboard.models.summaries import StandingQuerySet
from leaderboard.read_model import board_sums
from leaderboard.read_model.board_sums import Reading, reading, reading_of_baselines
from leaderboard.read_model.details import Details
from leaderboard.read_model.entries import Entry, alone
from leaderboard.read_model.leaderboard_rows import Totals

__all__ = [
    "Cell",
    "Entry",
    "Narrowing",
    "Setting",
    "alone",
    "judged",
    "known_settings",
]


IN_WORDS = {"world_size": "{} ranks", "profile": "{} inputs", "judge_version": "judge {}"}


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
        return self.told()

    def told(self, but: str = "") -> str:
        """In words, all but one of the fields."""
        kept = {name: value for name, value in vars(self).items() if name != but}
        return ", ".join(IN_WORDS.get(name, "{}").format(value) for name, value in kept.items())


SETTING_FIELDS = tuple(Setting.__dataclass_fields__)


def known_settings() -> list[Setting]:
    """With ranked results; the first is that of a board whose address asks for none."""
    found = ask(ProblemStanding.objects.settings)
    return [Setting(**dict(zip(SETTING_FIELDS, place, strict=True))) for *place, _, _ in found]


class Narrowing(TypedDict, total=False):
    """What a board is narrowed to.

    `category`, `problems` (numbers), `backend`, `mechanism` and `nccl_free` say which kernels
    count: others are attempts that failed, and a submission without one of those is left out.
    `verified` leaves only what was judged here in isolation. Baselines stay under a harness that
    is not theirs, and all of their kernels count: others are compared with them.
    """

    category: str
    problems: frozenset[int] | None
    harness: str
    backend: str
    mechanism: str
    nccl_free: bool
    verified: bool
    submission: int


FIELDS = (
    "submission_id",
    "submission__model__name",
    "submission__model__slug",
    "submission__model__vendor",
    "submission__model__is_baseline",
    "submission__harness",
    "submission__trust",
    "created",
    "submission__cost_usd",
)
HARNESS, BASELINE = (
    FIELDS.index(name) for name in ("submission__harness", "submission__model__is_baseline")
)

# What is not among the names asked for is left out of a query. Text takes a fifth of the time that
# Django takes for 200 moments.
ANNOTATED = {
    "created": Cast("submission__created_at", TextField()),
    board_sums.RECORD: board_sums.RECORD_AT,
}

# All that a page of one model or submission shows of a Standing's details.
WHOLE = ("cells", "kernels", "speedups", "by_category")


def judged(
    setting: Setting,
    scored: int,
    *,
    p: float = 1.0,
    ahead: Sequence[str] | None = (),
    **narrowing: Unpack[Narrowing],
) -> list[Entry]:
    """`scored` is how many problems the shares are of: those of the category, if one is given.
    `ahead` names columns of the details that are read along; None makes entries without."""
    where = {**vars(setting)}
    if submission := narrowing.get("submission"):
        where["submission"] = submission
    if narrowing.get("verified"):
        where["submission__trust"] = Trust.VERIFIED.value
    narrow = Narrow(
        category=narrowing.get("category", ""),
        problems=narrowing.get("problems"),
        backend=narrowing.get("backend", ""),
        mechanism=narrowing.get("mechanism", ""),
        nccl_free=narrowing.get("nccl_free", False),
    )
    asked, of_baselines = (make(narrow, p) for make in (reading, reading_of_baselines))
    found = ask(_board, tuple(where), (*asked.names, *(ahead or ())), **where, **asked.values)
    if harness := narrowing.get("harness"):
        found = [row for row in found if row[HARNESS] == harness or row[BASELINE]]
    plain = _plain_of_long if asked.is_long else _plain
    start = len(FIELDS) + 1
    end = start + len(asked.names)
    made = (plain(of_baselines if row[BASELINE] else asked, scored, p, row[:end]) for row in found)
    entries = [entry for entry in made if entry]
    if ahead is None:
        return entries
    read = zip(*(row[start:] for row in found), strict=True)
    columns = zip((*asked.names, *ahead), read, strict=False)
    numbers = [row[0] for row in found]
    known = {name: dict(zip(numbers, values, strict=True)) for name, values in columns}
    details = Details(where=where, narrow=narrow, known=known)
    whole = details.of_all_kinds()
    return [entry.with_details(whole if entry.baseline else details) for entry in entries]


# Of few rows the database says something else in the next version of the data.
@functools.lru_cache(maxsize=512)
def _plain(asked: Reading, scored: int, p: float, row: tuple[Any, ...]) -> Entry | None:
    """None where no kernel counts."""
    k = row[len(FIELDS)]
    summed = asked.sum_up(k, *row[len(FIELDS) + 1 :])
    if summed is None:
        return None
    totals, sums = summed
    return _entry(row, totals, scores.score_of(sums, scored, k=k, p=p))


def _plain_of_long(asked: Reading, scored: int, p: float, row: tuple[Any, ...]) -> Entry | None:
    """The same, remembered by a digest in place of the long columns."""
    short = len(FIELDS) + 1
    held = _held(asked, scored, p, row[:short], digest(row[short:]))
    return once(held, lambda: _plain.__wrapped__(asked, scored, p, row))


# Five filters on 200 submissions.
@functools.lru_cache(maxsize=1024)
def _held(*made_of: Hashable) -> list[Entry | None]:
    """Room for the entry that these values make."""
    return []


def _board(where: Iterable[str], names: Sequence[str]) -> QuerySet[Standing, tuple[Any, ...]]:
    found = Standing.objects.ranked().filter(**given(where)).annotate(**ANNOTATED)
    return found.order_by("submission_id").values_list(*FIELDS, "submission__k", *names)


class Shown(NamedTuple):
    """A submission in one of its settings; `is_usual` where boards begin with that."""

    setting: Setting
    entry: Entry
    is_usual: bool


def each_in_its_setting(standings: StandingQuerySet, scored: int) -> list[Shown]:
    """Every submission once, in the setting that boards begin with, or else where most of its
    problems were judged; one query."""
    usual = Subquery(ProblemStanding.objects.all().usual())
    told = (*FIELDS, "submission__k", "total", "attempted", "usual", *SETTING_FIELDS)
    first = len(told) - len(SETTING_FIELDS)
    best: dict[int, tuple[Any, ...]] = {}
    rank: dict[int, tuple[bool, int]] = {}
    for row in standings.annotate(**ANNOTATED, usual=usual).values_list(*told, *WHOLE):
        setting = dict(zip(SETTING_FIELDS, row[first:], strict=False))
        mine = (setting == row[first - 1], row[first - 2])
        if row[0] not in rank or mine > rank[row[0]]:
            best[row[0]], rank[row[0]] = row, mine
    columns = zip(
        WHOLE, zip(*(row[len(told) :] for row in best.values()), strict=True), strict=False
    )
    known = {name: dict(zip(best, values, strict=True)) for name, values in columns}
    details = Details(where={}, narrow=EVERYTHING, known=known)
    made = []
    for number, row in best.items():
        k, total = row[len(FIELDS) : len(FIELDS) + 2]
        totals = Totals.unpack(total)
        entry = _entry(row, totals, scores.score_of(totals.summed, scored, k=k))
        setting = dict(zip(SETTING_FIELDS, row[first:], strict=False))
        made.append(Shown(Setting(**setting), entry.with_details(details), rank[number][0]))
    return made


def _entry(row: Sequence[Any], totals: Totals, score: Score) -> Entry:
    """`row` begins with FIELDS."""
    submission, model, slug, vendor, baseline, harness, trust, created, cost = row[: len(FIELDS)]
    return Entry(
        model=model,
        slug=slug,
        vendor=vendor,
        harness=harness,
        trust=trust,
        url=f"{_submissions_url()}{submission}",
        date=_moment(created),
        score=score,
        ended=totals.modes,
        backends=tuple(totals.backends),
        utilisation=totals.utilisation,
        cost_usd=cost,
        baseline=baseline,
        submission=submission,
    )


def _moment(text: str) -> str:
    """In ISO 8601. Databases write UTC: SQLite does not say so, PostgreSQL says `+00` and leaves
    out the zeros that a fraction ends with."""
    seconds, dot, fraction = text[11:].removesuffix("+00").partition(".")
    return (
        f"{text[:10]}T{seconds}{dot}{fraction:0<6}+00:00" if dot else f"{text[:10]}T{seconds}+00:00"
    )


@functools.cache
def _submissions_url() -> str:
    """What stands before a submission's number: `reverse` costs more than the rest of a row."""
    return reverse("submission", args=[0]).removesuffix("0")
