"""The write-through summary that pages read, and the standings made of it, from stored runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import orjson
from django.db import transaction
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    FilteredRelation,
    Q,
    QuerySet,
    Subquery,
    TextField,
    When,
)
from django.db.models.functions import Cast, Lower

from leaderboard.kit.prepared import Given, ask, change, given, send
from leaderboard.metrics.attempts import SUMMED, Entry, Judged, entry_of, summed
from leaderboard.metrics.tallies import Tally, tally_of
from leaderboard.models import (
    Kernel,
    Problem,
    ProblemStanding,
    Run,
    Standing,
    Submission,
    Summary,
)
from leaderboard.models.runs import SETTING, RunQuerySet
from leaderboard.models.submissions import RANKED
from leaderboard.read_model import problem_aggregates
from leaderboard.read_model.cell_columns import Packed
from leaderboard.read_model.leaderboard_rows import Stored, columns_of, with_tally
from leaderboard.read_model.problem_aggregates import Locked

# Values of the columns SETTING.
Setting = tuple[Any, ...]
Row = tuple[Any, ...]

PLACE = 2 + len(SETTING)
COLUMNS = Judged._fields
_columns_of_run = attrgetter(*(name.replace("__", ".") for name in COLUMNS))
# Within a place the last run of each attempt is the one that counts.
ORDER = (*COLUMNS[:PLACE], "kernel__attempt", "kernel__step", "finished_at", "id")
WHERE = ("submission_id", "problem_id", *SETTING)
STORED = ("by_category", "by_threshold", *Packed._fields)


class Known(NamedTuple):
    """Of a submission, a problem and what is stored of both in one setting. `category` is None
    where the problem is not scored; `is_last` says of a step of an attempt and of a version of the
    problem that the one has no later step and the other is current."""

    k: int
    is_baseline: bool
    is_ranked: bool
    category: str | None
    is_last: bool
    summary: int | None
    attempts: list[Entry]
    standing: int | None
    stored: Stored


def rewrite(submission_id: int, problem_id: int) -> None:
    """Bring what is known of one submission on one problem up to date, in the caller's
    transaction."""
    whose = {"submission_id": submission_id, "problem_id": problem_id}
    summed_up = Summary.objects.filter(**whose).order_by().values_list(*SETTING)
    judged: dict[Setting, dict[int, Entry]] = {setting: {} for setting in summed_up}
    for run in map(Judged._make, ask(_runs, **whose)):
        judged.setdefault(run[2:PLACE], {})[run.kernel__attempt] = entry_of(run)
    for setting, entries in sorted(judged.items()):
        place = {**whose, **dict(zip(SETTING, setting, strict=True))}
        known, of_all = _asked(place)
        _put(place, known(), of_all(), list(entries.values()))


def fold_in(run: Run) -> None:
    """As `rewrite`, where this run, stored as it is here, is all that has changed: attempts other
    than its own are not looked at."""
    judged = Judged._make(_columns_of_run(run))
    attempt = judged.kernel__attempt
    place = dict(zip(WHERE, judged[:PLACE], strict=True))
    asked, of_all = _asked(place, attempt, run.kernel.step, run.problem_digest)
    known = asked()
    is_last = known.is_last and run.has_counted_verdict
    last = [judged] if is_last else map(Judged._make, ask(_last_run, **place, attempt=attempt))
    others = [entry for entry in known.attempts if entry["attempt"] != attempt]
    attempts = sorted(others + list(map(entry_of, last)), key=itemgetter("attempt"))
    _put(place, known, of_all(), attempts)


def _asked(
    place: Mapping[str, Any], attempt: int = 0, step: int = 0, digest: str = ""
) -> tuple[Callable[[], Known], Callable[[], Locked]]:
    """What is stored of the submission, and of all at the problem; each waits for its answer."""
    rows = send(_beside, **place, attempt=attempt, step=step, digest=digest)
    return partial(_known, rows), problem_aggregates.lock(place)


def _known(rows: Callable[[], list[Row]]) -> Known:
    (
        (*facts, attempts, standing, by_category, by_threshold, cells, kernels, outcomes, speedups),
    ) = rows()
    stored = Stored(Packed(cells, kernels, outcomes, speedups), by_category, by_threshold)
    return Known._make((*facts, orjson.loads(attempts or "[]"), standing, stored))


def _runs() -> QuerySet[Run, Row]:
    return _counted().order_by(*ORDER[2:]).values_list(*COLUMNS)


def _last_run() -> QuerySet[Run, Row]:
    """Of one attempt."""
    # No index holds the lower case: a database without statistics would look for all runs of that
    # hardware first.
    runs = _counted().alias(on=Lower("hardware_id")).filter(on=Given("hardware_id"))
    runs = runs.filter(kernel__attempt=Given("attempt"), **given(SETTING[1:]))
    return runs.order_by(*ORDER[PLACE:]).reverse().values_list(*COLUMNS)[:1]


def _counted() -> RunQuerySet:
    whose = {"kernel__submission": Given("submission_id"), "kernel__problem": Given("problem_id")}
    return Run.objects.filter(**whose).counted()


def _put(place: Mapping[str, Any], known: Known, of_all: Locked, attempts: Sequence[Entry]) -> None:
    """These attempts in place of those that were summed up."""
    values = summed(attempts) if attempts else None
    _store(place, values, known.summary)
    if known.category:
        tally = tally_of(place["problem_id"], known.category, attempts) if attempts else None
        _update_standing(place, known, tally)
    shown = values if known.is_ranked else None
    problem_aggregates.put(of_all, place["submission_id"], known.is_baseline, shown)


def _beside() -> QuerySet[Submission, Row]:
    """All in one question, which is answered sooner than four."""
    at_problem = {f"summaries__{name}": Given(name) for name in ("problem_id", *SETTING)}
    over_all = {f"standings__{name}": Given(name) for name in SETTING}
    problem = Problem.objects.filter(pk=Given("problem_id")).order_by()
    attempt = Kernel.objects.filter(**given(("submission_id", "problem_id", "attempt")))
    has_later = Exists(attempt.filter(step__gt=Given("step")))
    is_current = Exists(problem.filter(digest=Given("digest")))
    found = Submission.objects.filter(pk=Given("submission_id")).annotate(
        summary=FilteredRelation("summaries", condition=Q(**at_problem)),
        standing=FilteredRelation("standings", condition=Q(**over_all)),
        # As text, like all else that is read with bytes.
        attempts=Cast("summary__attempts", TextField()),
        category=Subquery(problem.filter(scored=True).values("category")),
        is_last=ExpressionWrapper(is_current & ~has_later, BooleanField()),
        is_ranked=Case(When(RANKED, then=True), default=False),
    )
    return found.order_by().values_list(
        *("k", "model__is_baseline", "is_ranked", "category", "is_last"),
        *("summary__pk", "attempts", "standing__pk"),
        *(f"standing__{name}" for name in STORED),
    )


def _store(place: Mapping[str, Any], values: Mapping[str, Any] | None, known: int | None) -> None:
    """`known` is the row of what was summed up."""
    if values is None:
        Summary.objects.filter(**place).delete()
    elif known:
        change(_summary, columns=SUMMED, pk=known, **values)
    else:
        Summary.objects.create(**place, **values)


def _summary() -> QuerySet[Summary]:
    return Summary.objects.filter(pk=Given("pk"))


def _update_standing(place: Mapping[str, Any], known: Known, tally: Tally | None) -> None:
    """Put one problem's part of a standing in place of what it was."""
    if known.standing is not None:
        columns = with_tally(known.stored, place["problem_id"], tally, known.k)
        if columns is None:
            Standing.objects.filter(pk=known.standing).delete()
        else:
            change(_standing, columns=tuple(columns), pk=known.standing, **columns)
    elif tally:
        where = {name: value for name, value in place.items() if name != "problem_id"}
        Standing.objects.create(**where, **columns_of([tally], known.k))


def _standing() -> QuerySet[Standing]:
    return Standing.objects.filter(pk=Given("pk"))


def rebuild() -> int:
    """Make every row anew; returns how many there are."""
    with transaction.atomic():
        # A run that finishes meanwhile locks its submission too, and so waits.
        drawn = dict(Submission.objects.select_for_update().values_list("pk", "k"))
        ProblemStanding.objects.all().delete()
        Standing.objects.all().delete()
        Summary.objects.all().delete()
        categories = dict(Problem.objects.scored().values_list("pk", "category"))
        by_submission = groupby(_rows(_judged(Run.objects.all())), lambda row: row.submission_id)
        count = 0
        for submission_id, group in by_submission:
            rows = list(group)
            count += len(Summary.objects.bulk_create(rows, batch_size=1000))
            Standing.objects.bulk_create(_standings(rows, categories, drawn[submission_id]))
        problem_aggregates.refresh_all()
        return count


def _standings(
    rows: Iterable[Summary], categories: Mapping[int, str], k: int
) -> Iterator[Standing]:
    """Of one submission."""
    groups: dict[Setting, list[Tally]] = {}
    for row in rows:
        if category := categories.get(row.problem_id):
            own = groups.setdefault(_setting_of(row), [])
            own.append(tally_of(row.problem_id, category, row.attempts))
            submission_id = row.submission_id
    for setting, tallies in sorted(groups.items(), key=lambda pair: pair[0]):
        yield Standing(
            submission_id=submission_id,
            **dict(zip(SETTING, setting, strict=True)),
            **columns_of(tallies, k),
        )


def _setting_of(row: Summary) -> Setting:
    return tuple(getattr(row, name) for name in SETTING)


def _judged(runs: Any, order: Sequence[str] = ORDER) -> Iterator[Judged]:
    found = runs.counted().order_by(*order).values_list(*COLUMNS).iterator()
    return map(Judged._make, found)


def _rows(runs: Iterable[Judged]) -> Iterator[Summary]:
    for place, group in groupby(runs, key=lambda run: run[:PLACE]):
        last = {run.kernel__attempt: run for run in group}
        attempts = [entry_of(run) for run in last.values()]
        yield Summary(
            submission_id=place[0],
            problem_id=place[1],
            **dict(zip(SETTING, place[2:], strict=True)),
            **summed(attempts),
        )
