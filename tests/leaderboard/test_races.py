"""Threads that do the same at the same moment, on the real database."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection

from leaderboard.models import (
    DataVersion,
    Harness,
    LanguageModel,
    Problem,
    Run,
    Source,
    Status,
    Submission,
    Summary,
)
from leaderboard.models.runs import RunQuerySet
from leaderboard.runs import evaluation, hosts
from leaderboard.runs.claims import Holding, LeaseLost
from leaderboard.submissions.intake import Metadata, accept
from leaderboard.submissions.sources import Candidate, HandedIn
from leaderboard.submissions.target_selection import TargetRequest
from tests.leaderboard import factory
from tests.leaderboard.conftest import Bells
from tests.leaderboard.running import HELLO, claim, fresh, lapse, report_of, say_hello, worker_token

pytestmark = pytest.mark.server


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_gets_the_run(run: Run) -> None:
    worker_token()
    got, lost = _race(lambda name: claim(run, name))
    assert (len(got), len(lost)) == (1, 7)
    found = fresh(run)
    assert (found.tries, found.lease_token) == (1, got[0].holding.lease_token)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_takes_over_a_lapsed_lease(run: Run) -> None:
    claim(run, "dead")
    lapse(run)
    got, _ = _race(lambda name: claim(run, name))
    assert len(got) == 1
    assert fresh(run).tries == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_reports_under_one_lease_one_is_stored(run: Run) -> None:
    lease = claim(run)
    report = report_of(run)
    got, lost = _race(lambda _: evaluation.finish(run.id, lease.holding, report))
    assert (len(got), len(lost)) == (1, 7)
    assert Summary.objects.get().made == 1


@pytest.mark.django_db(transaction=True)
def test_runs_of_one_submission_that_end_together_are_all_summed_up(problem: Problem) -> None:
    submission = factory.make_submission(k=8)
    work: dict[str, tuple[Run, Holding, dict[str, Any]]] = {}
    for attempt in range(1, 9):
        run = factory.make_run(factory.make_kernel(submission, problem, attempt=attempt))
        lease = claim(run)
        work[f"worker-{attempt - 1}"] = (run, lease.holding, report_of(run))
    before = DataVersion.objects.current()
    got, _ = _race(lambda name: evaluation.finish(work[name][0].id, *work[name][1:]))
    assert len(got) == 8
    assert Summary.objects.get().made == 8
    assert DataVersion.objects.current() == before + 8


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", ["same", None])
def test_requests_at_the_same_moment_are_told_apart_by_their_key(
    problem: Problem, key: str | None
) -> None:
    owner, metadata = factory.make_user(), Metadata(model="M", harness=Harness.HUMAN)
    kernel = Candidate(problem="1", backend="pytorch", source=factory.SOURCE)
    one = HandedIn(candidates=[kernel])
    got, _ = _race(lambda _: accept(owner, metadata, one, TargetRequest(), idempotency_key=key))
    assert len(got) == 8
    assert sum(accepted.is_new for accepted in got) == (1 if key else 8)
    assert Submission.objects.count() == Run.objects.count() == (1 if key else 8)
    assert (Source.objects.count(), LanguageModel.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ending", ["fail", "silence"])
def test_a_cancel_while_a_worker_gives_its_run_back_is_never_lost(
    run: Run, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancel that comes right after the first change that the giving back tries."""
    lease = claim(run)
    lapse(run)
    update, cancels = RunQuerySet.update, [Thread(target=_cancel, args=[run])]

    def update_and_be_cancelled(rows: RunQuerySet, **values: Any) -> int:
        changed = update(rows, **values)
        if cancels:
            cancel = cancels.pop()
            started.append(cancel)
            cancel.start()
            cancel.join(0.5)  # it may have to wait for the transaction that this stands in
        return changed

    started: list[Thread] = []
    monkeypatch.setattr(RunQuerySet, "update", update_and_be_cancelled)
    if ending == "fail":
        evaluation.fail(run.id, lease.holding, "driver hung")
    else:
        evaluation.give_up_lost()
    started[0].join()
    assert fresh(run).status == Status.CANCELLED


def _cancel(run: Run) -> None:
    try:
        evaluation.cancel(run)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_of_many_sweeps_one_rings(run: Run, bells: Bells) -> None:
    say_hello(HELLO)
    bells.clear()
    Run.objects.filter(pk=run.pk).update(rung_at=None)
    _race(lambda _: hosts.sweep())
    assert bells == [(run.id, "cpu")]


def _race(work: Any, threads: int = 8) -> tuple[list[Any], list[Exception]]:
    """Run `work` in threads that start together: what they got, and the refusals of the others."""
    barrier = Barrier(threads)
    got: list[Any] = []
    refused: list[Exception] = []

    def one(name: str) -> None:
        barrier.wait()
        try:
            got.append(work(name))
        except LeaseLost as fenced:
            refused.append(fenced)
        finally:
            connection.close()

    workers = [Thread(target=one, args=[f"worker-{i}"]) for i in range(threads)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    return got, refused
