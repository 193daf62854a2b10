"""Make rows of a board of what was judged here, within one setting."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from operator import or_
from typing import NamedTuple, TypedDict, Unpack

import orjson
from django.db.models import Q, QuerySet, Subquery

from leaderboard.metrics import thresholds
from leaderboard.metrics.tallies import EVERYTHING, Cell, KernelFilter
from leaderboard.models import LeaderboardRow, ProblemAggregate, Trust
from leaderboard.models.summaries import HARDENED, LeaderboardRowQuerySet
from leaderboard.read_model import leaderboard_rows
from leaderboard.read_model.details import LazyColumns
from leaderboard.read_model.entries import BoardRow, alone
from leaderboard.read_model.kernel_filters import parts_of
from leaderboard.read_model.leaderboard_rows import Totals
from leaderboard.read_model.setting import IN_WORDS, SETTING_FIELDS, Setting
from leaderboard.read_model.stored_entries import (
    BASELINE,
    FIELDS,
    HARNESS,
    K,
    StoredRow,
    entry_of_row,
    score_of_totals,
)

__all__ = [
    "IN_WORDS",
    "SETTING_FIELDS",
    "BoardRow",
    "Cell",
    "Narrowing",
    "Setting",
    "alone",
    "begins_with",
    "judged",
    "judged_in",
    "known_settings",
]


def known_settings() -> list[Setting]:
    """Return the settings with ranked results; boards begin with the first."""
    found = ProblemAggregate.objects.settings()
    return [Setting(**dict(zip(SETTING_FIELDS, place, strict=True))) for *place, _, _ in found]


def checking(known: Sequence[Setting]) -> Setting | None:
    """Return the setting by which problems are easy or hard: the first that only checks hidden
    inputs, as most kernels are judged there, else the first."""
    own = (one for one in known if not one.is_timed and one.profile == HARDENED)
    return next(own, next(iter(known), None))


class Narrowing(TypedDict, total=False):
    """Names the filters of a board.

    `category`, `problems` (numbers), `backend`, `mechanism` and `nccl_free` say which kernels
    count: others are attempts that failed, and a submission without one of those is left out.
    `verified` leaves only what was judged here: timed, too, where the setting is. Baselines stay
    under a harness that is not theirs, and all of their kernels count: others are compared with
    them.
    """

    category: str
    problems: frozenset[int] | None
    harness: str
    backend: str
    mechanism: str
    nccl_free: bool
    verified: bool
    submission: int


# What of a Narrowing is part of a KernelFilter.
OF_KERNELS = tuple(KernelFilter.__dataclass_fields__)
# All that a page of one model shows of the details of its rows.
WHOLE = ("cells", "by_category")
PLACED = (*WHOLE, "total", "attempted", "usual", *SETTING_FIELDS)
# Nothing is known at another p than this without looking further than at totals.
USUAL_P = 1.0


def judged(
    setting: Setting,
    scored: int,
    *,
    p: float = 1.0,
    ahead: Sequence[str] = (),
    **narrowing: Unpack[Narrowing],
) -> list[BoardRow]:
    """Return the rows that boards show. `scored` is how many problems the shares are of: those of
    the category, if one is given. `ahead` names columns of the details that are read along."""
    (found,) = judged_in({setting: scored}, p=p, ahead=ahead, **narrowing)
    return found


def judged_in(
    scored: Mapping[Setting, int],
    *,
    p: float = 1.0,
    ahead: Sequence[str] = (),
    **narrowing: Unpack[Narrowing],
) -> list[list[BoardRow]]:
    """Return the same in each of these settings, no two of one placement, in one query."""
    also: dict[str, object] = {}
    if submission := narrowing.get("submission"):
        also["submission"] = submission
    if narrowing.get("verified") and all(setting.is_timed for setting in scored):
        also["submission__trust"] = Trust.VERIFIED.value
    narrow = KernelFilter(**{name: narrowing[name] for name in OF_KERNELS if name in narrowing})  # type: ignore[literal-required]
    names = (*_read_for(narrow, p), *ahead)
    found = list(_ranked(scored, also, names))
    if harness := narrowing.get("harness"):
        found = [row for row in found if row[HARNESS] == harness or row[BASELINE]]
    made = []
    for setting, count in scored.items():
        own = [row for row in found if row[-1] == setting.placement]
        details = LazyColumns(
            where={**vars(setting), **also}, narrow=narrow, known=_by_submission(own, names)
        )
        rows = _entries(own, setting, count, p, details)
        for entry in rows if harness or not narrow.is_by_problem else ():
            entry.unfiltered = entry.baseline
        made.append(rows)
    return made


def _entries(
    found: Sequence[StoredRow], setting: Setting, scored: int, p: float, details: LazyColumns
) -> list[BoardRow]:
    """Return the entries of rows of one setting."""
    narrow, names = details.narrow, _read_for(details.narrow, p)
    if names == COUNTED:
        counted = _counted(found, narrow, p)
        details.known["solved"] = {number: one.solved for number, one in counted.items()}
        totals = {number: one.totals for number, one in counted.items()}
    else:
        own = slice(len(FIELDS), len(FIELDS) + len(names))
        totals = {row[0]: _stored_totals(row[own], narrow.category, p) for row in found}
    of_baselines = details.of_all_kinds()
    return [
        entry_of_row(row, score, summed, of_baselines if row[BASELINE] else details)
        for row in found
        if (summed := totals[row[0]])
        for score in [score_of_totals(summed, scored, row[K], setting, p)]
    ]


def _ranked(
    settings: Iterable[Setting], also: Mapping[str, object], names: Iterable[str]
) -> QuerySet[LeaderboardRow, StoredRow]:
    each = functools.reduce(or_, (Q(**vars(setting)) for setting in settings))
    rows = LeaderboardRow.objects.ranked().filter(each, **also)
    return rows.order_by("submission_id").values_list(*FIELDS, *names, "placement")


def _by_submission(rows: Sequence[StoredRow], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the columns behind FIELDS by their names."""
    columns = zip(*(row[len(FIELDS) :] for row in rows), strict=True)
    numbers = [row[0] for row in rows]
    return {
        name: dict(zip(numbers, values, strict=True))
        for name, values in zip(names, columns, strict=False)
    }


def _read_for(narrow: KernelFilter, p: float) -> tuple[str, ...]:
    """Return the columns that totals are made of."""
    if not narrow.is_by_category or (narrow.category and p != USUAL_P):
        return COUNTED
    if narrow.category:
        return ("by_category",)
    return ("total",) if p == USUAL_P else ("total", "by_threshold")


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
    sums = totals.sums._replace(**fast._asdict())
    return totals._replace(sums=sums, outcomes=totals.outcomes._replace(fast=None))


class Counted(NamedTuple):
    """Holds what a filter leaves of a row: totals, None where no kernel counts, and problems
    solved."""

    totals: Totals | None
    solved: str


# Counting every attempt takes 1 ms a row, so what was made of the same outcomes is memoised: here
# five filters on 200 submissions. Threads may use it at once, so nothing iterates over it.
Key = tuple[str, int, KernelFilter, float]
COUNTED = ("pk", "digest")
_MEMOISED: dict[Key, Counted] = {}
MOST_MEMOISED = 1024


def _counted(rows: Sequence[StoredRow], narrow: KernelFilter, p: float) -> dict[int, Counted]:
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


def _count(outcomes: str, k: int, narrow: KernelFilter, p: float) -> Counted:
    parts = list(parts_of(orjson.loads(outcomes), narrow))
    totals = leaderboard_rows.totals_of(parts, k, p) if parts else None
    return Counted(totals, leaderboard_rows.letters(parts))


class Shown(NamedTuple):
    """Holds a submission in one of its settings; `is_usual` where boards begin with that."""

    setting: Setting
    entry: BoardRow
    is_usual: bool


def begins_with(setting: Setting, usual: object, attempted: int, most: int) -> bool:
    """Return whether a submission is shown first in this setting because boards begin with it:
    where more than twice as many of its problems were judged elsewhere, that says more of it."""
    return vars(setting) == usual and 2 * attempted >= most


class Found(NamedTuple):
    """Holds a submission's stored row in one of its settings; `is_usual` as in Shown."""

    setting: Setting
    row: StoredRow
    is_usual: bool


def in_every_setting(rows: LeaderboardRowQuerySet) -> list[Found]:
    """Return submissions in each of their settings, first where most was judged; one query."""
    usual = Subquery(ProblemAggregate.objects.all().usual())
    stored = rows.annotate(usual=usual).order_by("-attempted", *SETTING_FIELDS)
    found, most = list[Found](), dict[int, int]()
    for row in stored.values_list(*FIELDS, *PLACED):
        attempted, usual_here, *place = row[-len(SETTING_FIELDS) - 2 :]
        setting = Setting(**dict(zip(SETTING_FIELDS, place, strict=True)))
        is_usual = begins_with(setting, usual_here, attempted, most.setdefault(row[0], attempted))
        found.append(Found(setting, row, is_usual))
    return found


def each_in_its_setting(found: Iterable[Found], ranked_from: Sequence[int]) -> list[Shown]:
    """Return every submission once, in the setting that boards begin with, or where most of its
    problems were judged. `ranked_from` is that of each scored problem."""
    best: dict[int, Found] = {}
    for one in found:
        if one.row[0] not in best or one.is_usual > best[one.row[0]].is_usual:
            best[one.row[0]] = one
    known = _by_submission([one.row for one in best.values()], PLACED)
    details = LazyColumns(where={}, narrow=EVERYTHING, known=known)
    return [
        Shown(setting, entry_of_row(row, score, totals, details), is_usual)
        for setting, row, is_usual in best.values()
        for totals in [Totals.of(orjson.loads(known["total"][row[0]]))]
        for scored in [sum(least <= setting.world_size for least in ranked_from)]
        for score in [score_of_totals(totals, scored, row[K], setting, USUAL_P)]
    ]


def timed_too(
    found: Iterable[Found], each: Sequence[Shown], ranked_from: Sequence[int]
) -> dict[int | None, Shown]:
    """Return, by number, the setting in which most was timed of submissions that are shown in one
    in which they were only checked."""
    checked = {one.entry.submission for one in each if not one.setting.is_timed}
    own = [one for one in found if one.row[0] in checked and one.setting.is_timed]
    timed = [one for one in own if one.setting.profile == HARDENED]
    return {one.entry.submission: one for one in each_in_its_setting(timed, ranked_from)}
