"""What the summary counts, and that pandas agrees."""

from __future__ import annotations

from evaluator.report import Verdict
from leaderboard import evaluation, frames, summary
from leaderboard.models import (
    Problem,
    Run,
    Submission,
    Summary,
    Trust,
)
from tests.leaderboard import factory
from tests.leaderboard.running import fresh, report_of


def test_results_of_an_older_version_of_a_problem_do_not_count(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    assert Summary.objects.count() == 1
    Problem.objects.update(digest="0" * 64)
    assert summary.rebuild() == 0


def test_a_result_without_isolation_is_never_ranked(run: Run) -> None:
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    lease = evaluation.claim(run.id, "host-1")
    evaluation.finish(run.id, lease.token, {**report_of(run), "isolation": "none"})
    assert fresh(run).verdict == Verdict.OK
    assert Submission.objects.get().trust == Trust.SELF_REPORTED
    assert not Summary.objects.exists()


def test_the_latest_run_of_an_attempt_counts(problem: Problem) -> None:
    submission = factory.make_submission(k=2)
    first = factory.make_judged(submission, problem, speedup=2.0)
    factory.make_judged(submission, problem, Verdict.OUTPUT_MISMATCH)
    again = factory.make_run(first.kernel)
    factory.finish(again, factory.make_report(again, speedup=1.5))
    row = Summary.objects.get()
    assert (row.made, row.correct, row.best_speedup) == (2, 1, 1.5)
    assert row.attempts[0]["run"] == str(again.id)
    assert frames.differences() == []


def test_settings_are_never_mixed(problem: Problem) -> None:
    kernel = factory.make_kernel(factory.make_submission(), problem)
    for change in ({}, {"size": "standard"}, {"world_size": 4}, {"profile": "upstream"}):
        run = factory.make_run(kernel, **change)
        factory.finish(run, factory.make_report(run))
    assert [row.made for row in Summary.objects.all()] == [1, 1, 1, 1]
    assert len(Summary.objects.ranked().settings()) == 4


def test_rebuilding_the_summary_changes_nothing(problem: Problem) -> None:
    for model, verdicts in (("A", "ok build_error"), ("B", "timeout ok")):
        submission = factory.make_submission(model, k=2)
        for verdict in verdicts.split():
            factory.make_judged(submission, problem, Verdict(verdict))
    columns = [f.attname for f in Summary._meta.fields if f.name != "id"]
    before = list(Summary.objects.values_list(*columns))
    assert summary.rebuild() == len(before) == 2
    assert list(Summary.objects.values_list(*columns)) == before


def test_pandas_finds_a_wrong_summary(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    Summary.objects.update(best_speedup=9.0)
    assert len(frames.differences()) == 1
    Summary.objects.all().delete()
    assert len(frames.differences()) == 1
