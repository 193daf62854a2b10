"""The write-through summary that pages read, and the standings made of it, from stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Case, FilteredRelation, Q, QuerySet, Subquery, When
from django.db.models.functions import Lower

from leaderboard import problem_standings
from leaderboard.cell_columns import Packed
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
from leaderboard.prepared import Given, ask, change, given, pipelined, send
from leaderboard.problem_standings import Locked
from leaderboard.standings import Stored, columns_of, with_tally
from leaderboard.tallies import Tally, modes_of, tally_of

# Values of the columns SETTING.
Setting = tuple[Any, ...]
Row = tuple[Any, ...]
Entry = dict[str, Any]


class Judged(NamedTuple):
    """A counted run, as much of it as a summary needs."""

    kernel__submission_id: int
    kernel__problem_id: int
    hardware_id: str
    world_size: int
    size: str
    dtype: str
    profile: str
    judge_version: str
    kernel__attempt: int
    id: UUID
    verdict: str
    cause: str | None
    speedup: float | None
    speedup_low: float | None
    utilisation: float | None
    baseline_us: float | None
    kernel__backend: str
    mechanisms: list[str]
    flags: list[str]
    kernel__source_id: str


PLACE = 2 + len(SETTING)
COLUMNS = Judged._fields
# Within a place the last run of each attempt is the one that counts.
ORDER = (*COLUMNS[:PLACE], "kernel__attempt", "kernel__step", "finished_at", "id")
WHERE = ("submission_id", "problem_id", *SETTING)
STORED = ("by_category", "by_threshold", *Packed._fields)


class Known(NamedTuple):
    """Of a submission, a problem and what is stored of both in one setting. `category` is None
    where the problem is not scored."""

    k: int
    is_baseline: bool
    is_ranked: bool
    category: str | None
    attempts: list[Entry] | None
    standing: int | None
    stored: Stored


def rewrite(submission_id: int, problem_id: int) -> None:
    """Bring what is known of one submission on one problem up to date, in the caller's
    transaction."""
    whose = {"submission_id": submission_id, "problem_id": problem_id}
    summed_up = Summary.objects.filter(**whose).order_by().values_list(*SETTING)
    judged: dict[Setting, dict[int, Entry]] = {setting: {} for setting in summed_up}
    for run in map(Judged._make, ask(_runs, **whose)):
        judged.setdefault(run[2:PLACE], {})[run.kernel__attempt] = _entry(run)
    for setting, entries in sorted(judged.items()):
        place = {**whose, **dict(zip(SETTING, setting, strict=True))}
        known, of_all = send(_beside, **place), problem_standings.lock(place)
        _put(place, _known(known()), of_all(), list(entries.values()))


def fold_in(kernel: Kernel, setting: Mapping[str, Any]) -> None:
    """As `rewrite`, where a run of the kernel in this setting is all that has changed: attempts
    other than its own are not looked at."""
    attempt = kernel.attempt
    whose = {"submission_id": kernel.submission_id, "problem_id": kernel.problem_id}
    place = {**whose, **{name: setting[name] for name in SETTING}}
    with pipelined():
        last_run = send(_last_run, **place, attempt=attempt)
        beside, of_all = send(_beside, **place), problem_standings.lock(place)
        own = [_entry(Judged._make(run)) for run in last_run()]
        known = _known(beside())
        others = [entry for entry in known.attempts or () if entry["attempt"] != attempt]
        attempts = sorted(others + own, key=itemgetter("attempt"))
        _put(place, known, of_all(), attempts)


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
    _store(place, values, is_known=known.attempts is not None)
    if known.category:
        tally = tally_of(place["problem_id"], known.category, attempts) if attempts else None
        _update_standing(place, known, tally)
    shown = values if known.is_ranked else None
    problem_standings.put(of_all, place["submission_id"], known.is_baseline, shown)


def _known(rows: Sequence[Row]) -> Known:
    ((*facts, by_category, by_threshold, cells, kernels, outcomes, speedups),) = rows
    packed = Packed(cells, kernels, outcomes, speedups)
    return Known._make((*facts, Stored(packed, by_category, by_threshold)))


def _beside() -> QuerySet[Submission, Row]:
    """All in one question, which is answered sooner than four."""
    at_problem = {f"summaries__{name}": Given(name) for name in ("problem_id", *SETTING)}
    over_all = {f"standings__{name}": Given(name) for name in SETTING}
    problem = Problem.objects.scored().filter(pk=Given("problem_id")).order_by()
    found = Submission.objects.filter(pk=Given("submission_id")).annotate(
        summary=FilteredRelation("summaries", condition=Q(**at_problem)),
        standing=FilteredRelation("standings", condition=Q(**over_all)),
        category=Subquery(problem.values("category")),
        is_ranked=Case(When(RANKED, then=True), default=False),
    )
    return found.order_by().values_list(
        *("k", "model__is_baseline", "is_ranked", "category", "summary__attempts"),
        *("standing__pk", *(f"standing__{name}" for name in STORED)),
    )


def _store(place: Mapping[str, Any], values: Mapping[str, Any] | None, *, is_known: bool) -> None:
    if values is None:
        Summary.objects.filter(**place).delete()
    elif is_known:
        change(_summary, columns=SUMMED, **place, **values)
    else:
        Summary.objects.create(**place, **values)


def _summary() -> QuerySet[Summary]:
    return Summary.objects.filter(**given(WHERE))


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
        problem_standings.refresh_all()
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
        attempts = [_entry(run) for run in last.values()]
        yield Summary(
            submission_id=place[0],
            problem_id=place[1],
            **dict(zip(SETTING, place[2:], strict=True)),
            **summed(attempts),
        )


def _entry(run: Judged) -> Entry:
    """A run that was too fast to be true keeps its verdict and loses its numbers."""
    is_correct = run.verdict == "ok"
    return {
        "attempt": run.kernel__attempt,
        "run": str(run.id),
        "verdict": run.verdict,
        "cause": run.cause,
        "speedup": run.speedup if is_correct else None,
        "low": run.speedup_low if is_correct else None,
        "utilisation": run.utilisation if is_correct else None,
        "baseline_us": run.baseline_us if is_correct else None,
        "backend": run.kernel__backend,
        "mechanisms": run.mechanisms,
        "nccl": uses_nccl(run.flags, run.mechanisms),
        "kernel": run.kernel__source_id,
    }


def uses_nccl(flags: Iterable[str], mechanisms: Iterable[str]) -> bool:
    """Whether NCCL was named in the source or seen at work."""
    return "uses_nccl" in flags or "nccl" in mechanisms


# What a Summary holds besides its place.
SUMMED = (
    *("made", "correct", "best_speedup", "best_low", "utilisation", "best_run_id"),
    *("modes", "attempts"),
)


def summed(attempts: Sequence[Entry]) -> dict[str, Any]:
    correct = [entry for entry in attempts if entry["speedup"] is not None]
    best = max(correct, key=lambda entry: entry["speedup"], default={})
    best_run = UUID(best["run"]) if best else None
    values = (
        *(len(attempts), len(correct), best.get("speedup"), best.get("low")),
        *(best.get("utilisation"), best_run, modes_of(attempts), attempts),
    )
    return dict(zip(SUMMED, values, strict=True))
