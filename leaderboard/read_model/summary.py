"""Keep the summary and the rows that pages read up to date with the stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from django.db import transaction

from leaderboard.metrics.attempts import JUDGED, AttemptSummary, JudgedRun, entry_of, summed
from leaderboard.models import (
    DataVersion,
    LeaderboardRow,
    Problem,
    Run,
    Submission,
    Summary,
)
from leaderboard.models.catalogue import SUMMARY_FORMAT
from leaderboard.models.runs import SETTING, RunQuerySet
from leaderboard.read_model import problem_aggregates
from leaderboard.read_model.leaderboard_rows import columns_of

# Values of the columns SETTING.
Setting = tuple[Any, ...]

PLACE = 2 + len(SETTING)
# Within a place the last run of each attempt is the one that counts.
ORDER = (*JUDGED[:PLACE], "kernel__attempt", "kernel__step", "finished_at", "id")


def update(run: Run) -> None:
    """Bring what a stored run may have changed up to date, in the caller's transaction: its
    submission on its problem in its setting, and what is summed up of that."""
    setting = {name: getattr(run, name) for name in SETTING}
    _update(run.kernel.submission_id, run.kernel.problem_id, setting)


def rewrite(submission_id: int, problem_id: int) -> None:
    """Bring all that is known of one submission on one problem up to date, as `update` does."""
    whose = {"submission_id": submission_id, "problem_id": problem_id}
    runs = Run.objects.filter(kernel__submission=submission_id, kernel__problem=problem_id)
    judged = runs.counted().order_by().values_list(*SETTING)
    known = Summary.objects.filter(**whose).order_by().values_list(*SETTING)
    for setting in sorted({*known, *judged}):
        _update(submission_id, problem_id, dict(zip(SETTING, setting, strict=True)))


def _update(submission_id: int, problem_id: int, setting: Mapping[str, Any]) -> None:
    whose = {"submission_id": submission_id, **setting}
    place = {**whose, "problem_id": problem_id}
    own = {"kernel__submission": submission_id, "kernel__problem": problem_id}
    attempts = _attempts(_judged(Run.objects.filter(**own).few(**setting)))
    Summary.objects.put(place, summed(attempts) if attempts else None)
    # Asked under the lock of the submission: a new catalogue may have come while it was waited for.
    k = Submission.objects.values_list("k", flat=True).get(pk=submission_id)
    scored = Summary.objects.filter(problem__scored=True, **whose).order_by()
    problems = list(scored.values_list("problem_id", "problem__category", "attempts"))
    LeaderboardRow.objects.put(whose, columns_of(problems, k) if problems else None)
    problem_aggregates.refresh(problem_id, setting)


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
    judged = _judged(Run.objects.filter(kernel__submission=submission_id))
    rows = Summary.objects.bulk_create(_summaries(judged), batch_size=1000)
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


def _setting_of(row: Summary) -> Setting:
    return tuple(getattr(row, name) for name in SETTING)


def _judged(runs: RunQuerySet) -> Iterator[JudgedRun]:
    return map(JudgedRun.of, runs.counted().order_by(*ORDER).values_list(*JUDGED).iterator())


def _attempts(runs: Iterable[JudgedRun]) -> Sequence[AttemptSummary]:
    last = {run.kernel__attempt: run for run in runs}
    return [entry_of(run) for run in last.values()]


def _summaries(runs: Iterable[JudgedRun]) -> Iterator[Summary]:
    for place, group in groupby(runs, key=lambda run: run[:PLACE]):
        yield Summary(
            submission_id=place[0],
            problem_id=place[1],
            **dict(zip(SETTING, place[2:], strict=True)),
            **summed(_attempts(group)),
        )
