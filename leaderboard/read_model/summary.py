"""Keep the summary and the rows that pages read up to date with the stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import Any

from django.db import transaction

from leaderboard.metrics.attempts import JUDGED, AttemptSummary, JudgedRun, entry_of, summed
from leaderboard.models import (
    DataVersion,
    Hardware,
    LeaderboardRow,
    Problem,
    Run,
    Submission,
    Summary,
)
from leaderboard.models.catalogue import SUMMARY_FORMAT
from leaderboard.models.choices import FULL
from leaderboard.models.runs import SETTING, RunQuerySet
from leaderboard.models.summaries import SummaryQuerySet
from leaderboard.read_model import problem_aggregates
from leaderboard.read_model.carried_failures import with_failures
from leaderboard.read_model.leaderboard_rows import columns_of

# Values of the columns SETTING.
Setting = tuple[Any, ...]
# A problem in a setting.
Place = tuple[int, Setting]

PLACE = 2 + len(SETTING)
RANKS = SETTING.index("world_size")
# Within a place the last run of each attempt is the one that counts.
ORDER = (*JUDGED[:PLACE], "kernel__attempt", "kernel__step", "finished_at", "id")


def update(run: Run) -> None:
    """Bring what a stored run may have changed up to date, in the caller's transaction: its
    submission on its problem, where it ran and where its failure counts too."""
    _update(run.kernel.submission_id, run.kernel.problem_id, _setting_of(run))


def rewrite(submission_id: int, problem_id: int) -> None:
    """Bring all that is known of one submission on one problem up to date, as `update` does."""
    _update(submission_id, problem_id)


def _update(submission_id: int, problem_id: int, setting: Setting | None = None) -> None:
    """Write what changed of a problem, in every setting: one where it was `setting` at the least.

    A setting in which a scored problem was timed for the first time takes the failures of all
    problems; one that has no such run any more loses them.
    """
    stored = Summary.objects.filter(submission=submission_id).order_by()
    at_scored = stored.filter(placement=FULL, problem__scored=True)
    known = set(at_scored.values_list(*SETTING).distinct())
    runs = Run.objects.filter(kernel__submission=submission_id)
    own_timed = runs.counted().few(placement=FULL).filter(kernel__problem__scored=True)
    timed = set(own_timed.order_by().values_list(*SETTING).distinct())
    changed = {problem_id}
    if timed != known:
        changed |= set(runs.order_by().values_list("kernel__problem", flat=True))
    own = _judged(runs.filter(kernel__problem__in=changed))
    made = {(one.problem_id, _setting_of(one)): one for one in _summaries(own, timed)}
    before = _attempts_at(stored.filter(problem__in=changed))
    touched = {
        place
        for place in {*made, *before}
        if place not in made or place not in before or made[place].attempts != before[place]
    }
    touched |= {(problem_id, setting)} if setting else set()
    for problem, place in sorted(touched):
        _put(submission_id, problem, place, made.get((problem, place)))
    for place in sorted({place for _, place in touched}):
        _put_row(submission_id, place)
    for problem, place in sorted(touched):
        problem_aggregates.refresh(problem, dict(zip(SETTING, place, strict=True)))


def _attempts_at(rows: SummaryQuerySet) -> dict[Place, Sequence[AttemptSummary]]:
    found = rows.values_list("problem_id", *SETTING, "attempts")
    return {(problem, tuple(setting)): attempts for problem, *setting, attempts in found}


def _put(submission_id: int, problem_id: int, setting: Setting, made: Summary | None) -> None:
    place = {"submission_id": submission_id, "problem_id": problem_id}
    where = {**place, **dict(zip(SETTING, setting, strict=True))}
    Summary.objects.put(where, summed(made.attempts) if made else None)


def _put_row(submission_id: int, setting: Setting) -> None:
    whose = {"submission_id": submission_id, **dict(zip(SETTING, setting, strict=True))}
    # Asked under the lock of the submission: a new catalogue may have come while it was waited for.
    k = Submission.objects.values_list("k", flat=True).get(pk=submission_id)
    scored = Summary.objects.filter(problem__scored=True, **whose).order_by()
    problems = list(scored.values_list("problem_id", "problem__category", "attempts"))
    LeaderboardRow.objects.put(whose, columns_of(problems, k) if problems else None)


def rebuild_if_outdated() -> None:
    """Rebuild all rows if another release wrote them, or results or problems came since."""
    if DataVersion.objects.exclude(summary_format=SUMMARY_FORMAT).exists():
        rebuild()
        DataVersion.objects.bump()


def rebuild() -> int:
    """Recompute every row; return the number of Summary rows. Lock one submission or problem at a
    time, so that results come in meanwhile."""
    categories = dict(Problem.objects.scored().values_list("pk", "category"))
    submissions = list(Submission.objects.order_by("pk").values_list("pk", flat=True))
    count = sum(_rebuild(one, categories) for one in submissions)
    for problem_id in Problem.objects.order_by("pk").values_list("pk", flat=True):
        problem_aggregates.refresh_all(problem_id)
    DataVersion.objects.update(summary_format=SUMMARY_FORMAT)
    return count


@transaction.atomic
def _rebuild(submission_id: int, categories: Mapping[int, str]) -> int:
    # A run that finishes meanwhile locks its submission too, and so waits.
    (k,) = (
        Submission.objects.select_for_update().filter(pk=submission_id).values_list("k", flat=True)
    )
    Summary.objects.filter(submission=submission_id).delete()
    LeaderboardRow.objects.filter(submission=submission_id).delete()
    judged = list(_judged(Run.objects.filter(kernel__submission=submission_id)))
    at_scored = (run for run in judged if run.kernel__problem_id in categories)
    timed = {setting for run in at_scored if (setting := run[2:PLACE])[-1] == FULL}
    rows = Summary.objects.bulk_create(_summaries(judged, timed), batch_size=1000)
    LeaderboardRow.objects.bulk_create(_leaderboard_rows(rows, categories, k))
    return len(rows)


def _leaderboard_rows(
    rows: Iterable[Summary], categories: Mapping[int, str], k: int
) -> Iterator[LeaderboardRow]:
    """Yield those of one submission."""
    groups: dict[Setting, list[Summary]] = {}
    for row in rows:
        if row.problem_id in categories:
            groups.setdefault(_setting_of(row), []).append(row)
    for setting, own in sorted(groups.items(), key=lambda pair: pair[0]):
        problems = ((row.problem_id, categories[row.problem_id], row.attempts) for row in own)
        yield LeaderboardRow(
            submission_id=own[0].submission_id,
            **dict(zip(SETTING, setting, strict=True)),
            **columns_of(problems, k),
        )


def _setting_of(row: Summary | Run) -> Setting:
    return tuple(getattr(row, name) for name in SETTING)


def _judged(runs: RunQuerySet) -> Iterator[JudgedRun]:
    return map(JudgedRun.of, runs.counted().order_by(*ORDER).values_list(*JUDGED).iterator())


def _attempts(runs: Iterable[JudgedRun]) -> Sequence[AttemptSummary]:
    last = {run.kernel__attempt: run for run in runs}
    return [entry_of(run) for run in last.values()]


def _summaries(runs: Iterable[JudgedRun], timed: Set[Setting]) -> Iterator[Summary]:
    """Yield the rows of one submission, which was timed in these settings."""
    ranked_from = dict(Problem.objects.values_list("pk", "ranked_from"))
    devices = dict(Hardware.objects.values_list("pk", "device"))
    for (submission_id, problem_id), group in groupby(runs, key=lambda run: run[:2]):
        own = {
            place: _attempts(same) for place, same in groupby(group, key=lambda run: run[2:PLACE])
        }
        ranked = {one for one in timed if one[RANKS] >= ranked_from[problem_id]}
        for place, attempts in with_failures(own, ranked, devices).items():
            yield Summary(
                submission_id=submission_id,
                problem_id=problem_id,
                **dict(zip(SETTING, place, strict=True)),
                **summed(attempts),
            )
