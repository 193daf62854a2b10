"""Make rows of a board of what was judged here, within one setting."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

import orjson
from django.db.models import QuerySet, Subquery, TextField
from django.db.models.functions import Cast
from django.urls import reverse

from leaderboard.kit.prepared import ask, given
from leaderboard.metrics import scores, thresholds
from leaderboard.metrics.scores import Score
from leaderboard.metrics.tallies import EVERYTHING, Cell, Narrow
from leaderboard.models import LeaderboardRow, ProblemAggregate, Trust
from leaderboard.models.summaries import LeaderboardRowQuerySet
from leaderboard.read_model import leaderboard_rows
from leaderboard.read_model.details import Details
from leaderboard.read_model.entries import Entry, alone
from leaderboard.read_model.kernel_filters import parts_of
from leaderboard.read_model.leaderboard_rows import Totals
from leaderboard.read_model.setting import IN_WORDS, SETTING_FIELDS, Setting

__all__ = [
    "IN_WORDS",
    "SETTING_FIELDS",
    "Cell",
    "Entry",
    "Narrowing",
    "Setting",
    "alone",
    "judged",
    "known_settings",
]


StoredRow = tuple[Any, ...]


def known_settings() -> list[Setting]:
    """Return the settings with ranked results; boards begin with the first."""
    found = ask(ProblemAggregate.objects.settings)
    return [Setting(**dict(zip(SETTING_FIELDS, place, strict=True))) for *place, _, _ in found]


class Narrowing(TypedDict, total=False):
    """Names the filters of a board.

    `category`, `problems` (numbers), `backend`, `mechanism` and `nccl_free` say which kernels
    count: others are attempts that failed, and a submission without one of those is left out.
    `verified` leaves only what was judged here in isolation. Baselines stay under a harness that is
    not theirs, and all of their kernels count: others are compared with them.
    """

    category: str
    problems: frozenset[int] | None
    harness: str
    backend: str
    mechanism: str
    nccl_free: bool
    verified: bool
    submission: int


# What of a Narrowing is part of a Narrow.
OF_KERNELS = tuple(Narrow.__dataclass_fields__)
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
    "submission__k",
)
HARNESS, BASELINE, K = (
    FIELDS.index(name)
    for name in ("submission__harness", "submission__model__is_baseline", "submission__k")
)
# Text takes a fifth of the time that Django takes for 200 moments.
CREATED = Cast("submission__created_at", TextField())
# All that a page of one model shows of the details of its rows.
WHOLE = ("cells", "by_category")
# Nothing is known at another p than this without looking further than at totals.
USUAL_P = 1.0


def judged(
    setting: Setting,
    scored: int,
    *,
    p: float = 1.0,
    ahead: Sequence[str] = (),
    **narrowing: Unpack[Narrowing],
) -> list[Entry]:
    """Return the rows that boards show. `scored` is how many problems the shares are of: those of
    the category, if one is given. `ahead` names columns of the details that are read along."""
    where = {**vars(setting)}
    if submission := narrowing.get("submission"):
        where["submission"] = submission
    if narrowing.get("verified") and setting.is_timed:
        where["submission__trust"] = Trust.VERIFIED.value
    narrow = Narrow(**{name: narrowing[name] for name in OF_KERNELS if name in narrowing})  # type: ignore[literal-required]
    names = _read_for(narrow, p)
    found = ask(_ranked, tuple(where), (*names, *ahead), **where)
    if harness := narrowing.get("harness"):
        found = [row for row in found if row[HARNESS] == harness or row[BASELINE]]
    known = _by_submission(found, (*names, *ahead))
    if names == COUNTED:
        counted = _counted(found, narrow, p)
        known["solved"] = {number: one.solved for number, one in counted.items()}
        totals = {number: one.totals for number, one in counted.items()}
    else:
        own = slice(len(FIELDS), len(FIELDS) + len(names))
        totals = {row[0]: _stored_totals(row[own], narrow.category, p) for row in found}
    details = Details(where=where, narrow=narrow, known=known)
    of_baselines = details.of_all_kinds()
    return [
        _entry(row, score, summed, of_baselines if row[BASELINE] else details)
        for row in found
        if (summed := totals[row[0]])
        for score in [_score(summed, scored, row[K], setting, p)]
    ]


def _ranked(where: Iterable[str], names: Iterable[str]) -> QuerySet[LeaderboardRow, StoredRow]:
    rows = LeaderboardRow.objects.ranked().filter(**given(where)).annotate(created=CREATED)
    return rows.order_by("submission_id").values_list(*FIELDS, *names)


def _by_submission(rows: Sequence[StoredRow], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the columns behind FIELDS by their names."""
    columns = zip(*(row[len(FIELDS) :] for row in rows), strict=True)
    numbers = [row[0] for row in rows]
    return {
        name: dict(zip(numbers, values, strict=True))
        for name, values in zip(names, columns, strict=False)
    }


def _read_for(narrow: Narrow, p: float) -> tuple[str, ...]:
    """Return the columns that totals are made of."""
    if not narrow.is_by_category or (narrow.category and p != USUAL_P):
        return COUNTED
    if narrow.category:
        return ("by_category",)
    return ("total",) if p == USUAL_P else ("total", "by_threshold")


# Few rows differ from one version of the data to the next.
@functools.lru_cache(maxsize=512)
def _stored_totals(columns: tuple[str, ...], category: str, p: float) -> Totals | None:
    """Return the totals that a row holds; None where it has nothing in the category."""
    stored = orjson.loads(columns[0])
    if category:
        stored = stored.get(category)
        return Totals.of(stored) if stored else None
    totals = Totals.of(stored)
    if p == USUAL_P:
        return totals
    fast = thresholds.at(p, orjson.loads(columns[1]))
    return totals._replace(sums=totals.sums._replace(**fast._asdict()))


class Counted(NamedTuple):
    """Holds what a filter leaves of a row: totals, None where no kernel counts, and problems
    solved."""

    totals: Totals | None
    solved: str


# Counting every attempt takes 1 ms a row, so what was made of the same outcomes is memoised: here
# five filters on 200 submissions. Threads may use it at once, so nothing iterates over it.
Key = tuple[str, int, Narrow, float]
COUNTED = ("pk", "digest")
_MEMOISED: dict[Key, Counted] = {}
MOST_MEMOISED = 1024


def _counted(rows: Sequence[StoredRow], narrow: Narrow, p: float) -> dict[int, Counted]:
    """Count the attempts that a filter leaves of rows of FIELDS and COUNTED, by submission."""
    keys: dict[int, tuple[int, Key]] = {}
    for row in rows:
        pk, digest = row[len(FIELDS) :][:2]
        own = narrow.of_all_kinds if row[BASELINE] else narrow
        keys[pk] = (row[0], (digest, row[K], own, p))
    found = {pk: _MEMOISED.get(key) for pk, (_, key) in keys.items()}
    missing = [pk for pk, known in found.items() if known is None]
    stored = LeaderboardRow.objects.filter(pk__in=missing).values_list("pk", "outcomes")
    if len(_MEMOISED) + len(missing) > MOST_MEMOISED:
        _MEMOISED.clear()
    for pk, outcomes in stored if missing else ():
        key = keys[pk][1]
        found[pk] = _MEMOISED[key] = _count(outcomes, *key[1:])
    return {keys[pk][0]: known for pk, known in found.items() if known}


def _count(outcomes: str, k: int, narrow: Narrow, p: float) -> Counted:
    parts = list(parts_of(orjson.loads(outcomes), narrow))
    totals = leaderboard_rows.totals_of(parts, k, p) if parts else None
    return Counted(totals, leaderboard_rows.letters(parts))


class Shown(NamedTuple):
    """Holds a submission in one of its settings; `is_usual` where boards begin with that."""

    setting: Setting
    entry: Entry
    is_usual: bool


def each_in_its_setting(rows: LeaderboardRowQuerySet, ranked_from: Sequence[int]) -> list[Shown]:
    """Return every submission once, in the setting that boards begin with, or else where most of
    its problems were judged; one query. `ranked_from` is that of each scored problem."""
    usual = Subquery(ProblemAggregate.objects.all().usual())
    names = (*WHOLE, "total", "attempted", "usual", *SETTING_FIELDS)
    best: dict[int, tuple[tuple[bool, int], StoredRow, Setting]] = {}
    found = rows.annotate(created=CREATED, usual=usual).values_list(*FIELDS, *names)
    for row in found:
        attempted, usual_here, *place = row[-len(SETTING_FIELDS) - 2 :]
        setting = Setting(**dict(zip(SETTING_FIELDS, place, strict=True)))
        rank = (vars(setting) == usual_here, attempted)
        if row[0] not in best or rank > best[row[0]][0]:
            best[row[0]] = rank, row, setting
    known = _by_submission([row for _, row, _ in best.values()], names)
    details = Details(where={}, narrow=EVERYTHING, known=known)
    return [
        Shown(setting, _entry(row, score, totals, details), is_usual)
        for (is_usual, _), row, setting in best.values()
        for totals in [Totals.of(orjson.loads(known["total"][row[0]]))]
        for scored in [sum(least <= setting.world_size for least in ranked_from)]
        for score in [_score(totals, scored, row[K], setting, USUAL_P)]
    ]


def _score(totals: Totals, scored: int, k: int, setting: Setting, p: float) -> Score:
    return scores.score_of(totals.sums, scored, k=k, p=p, is_timed=setting.is_timed)


def _entry(row: StoredRow, score: Score, totals: Totals, details: Details) -> Entry:
    """Return the row of a board that FIELDS, their score and totals make."""
    submission, model, slug, vendor, baseline, harness, trust, created, cost, _ = row[: len(FIELDS)]
    return Entry(
        model=model,
        slug=slug,
        vendor=vendor,
        harness=harness,
        trust=trust if score.is_timed else Trust.CHECKED.value,
        url=f"{_submissions_url()}{submission}",
        date=_moment(created),
        score=score,
        modes=totals.modes,
        backends=tuple(totals.backends),
        utilisation=totals.utilisation,
        cost_usd=cost,
        made=totals.made,
        output_tokens=totals.output_tokens,
        usd=totals.usd,
        baseline=baseline,
        submission=submission,
        details=details,
    )


def _moment(text: str) -> str:
    """Return the moment in ISO 8601. Databases write UTC: SQLite does not say so, PostgreSQL says
    `+00` and leaves out the zeros that a fraction ends with."""
    seconds, dot, fraction = text[11:].removesuffix("+00").partition(".")
    return (
        f"{text[:10]}T{seconds}{dot}{fraction:0<6}+00:00" if dot else f"{text[:10]}T{seconds}+00:00"
    )


@functools.cache
def _submissions_url() -> str:
    """Return what precedes a submission's number: `reverse` costs more than the rest of a row."""
    return reverse("submission", args=[0]).removesuffix("0")
