"""What the summary counts, and that pandas agrees."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from django.db.models import Model

from evaluator.messages.report import Isolation, Verdict
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.metrics.tallies import cell_of
from leaderboard.models import (
    Hardware,
    LeaderboardRow,
    Moderation,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
    Summary,
    Trust,
    Visibility,
    WorkerHost,
)
from leaderboard.read_model import summary, summary_check
from leaderboard.read_model.kernel_filters import parts_of
from leaderboard.read_model.leaderboard_rows import cells_in
from leaderboard.runs import evaluation
from leaderboard.submissions import moderation, rulings
from tests.leaderboard import factory
from tests.leaderboard.running import claim, fresh, report_of
from tests.leaderboard.timings import make_timing

pytestmark = pytest.mark.server

KINDS: tuple[type[Model], ...] = (Summary, LeaderboardRow, ProblemAggregate)
NEVER_DONE = (Verdict.INFRA_ERROR, Verdict.CANCELLED)


def test_results_of_an_older_version_of_a_problem_do_not_count(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    assert Summary.objects.count() == 1
    Problem.objects.update(digest="0" * 64)
    assert summary.rebuild() == 0


def test_a_result_without_isolation_is_never_ranked(run: Run) -> None:
    Submission.objects.update(trust=Trust.SELF_REPORTED)
    holding = claim(run).holding
    WorkerHost.objects.update(isolation="none")
    evaluation.finish(run.id, holding, {**report_of(run), "isolation": "none"})
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
    assert summary_check.differences() == []


def test_the_last_step_of_an_attempt_counts_whenever_it_was_judged(problem: Problem) -> None:
    submission = factory.make_submission()
    steps = [factory.make_kernel(submission, problem, step=step) for step in (1, 2)]
    for kernel, speedup in zip(reversed(steps), (1.5, 3.0), strict=True):
        run = factory.make_run(kernel)
        factory.finish(run, factory.make_report(run, speedup=speedup))
    row = Summary.objects.get()
    assert (row.made, row.best_speedup) == (1, 1.5)
    assert summary_check.differences() == []


def test_attempts_that_no_longer_count_leave_every_table(problem: Problem) -> None:
    submission = factory.make_submission(k=2)
    runs = [factory.make_judged(submission, problem, speedup=speedup) for speedup in (2.0, 1.5)]
    Problem.objects.update(digest="0" * 64)
    summary.update(runs[0])
    assert not any(_stored(kind) for kind in KINDS)


@pytest.mark.parametrize("verdict", [one for one in Verdict if one not in NEVER_DONE])
def test_a_run_counts_as_the_database_counts_it(verdict: Verdict, problem: Problem) -> None:
    submission = factory.make_submission()
    for step, isolation in enumerate((Isolation.NONE, Isolation.BWRAP), 1):
        run = factory.make_run(factory.make_kernel(submission, problem, step=step))
        assert not run.has_counted_verdict
        factory.finish(run, factory.make_report(run, verdict, isolation=isolation))
        assert run.has_counted_verdict == Run.objects.counted().filter(pk=run.pk).exists()


def test_settings_are_never_mixed(problem: Problem) -> None:
    kernel = factory.make_kernel(factory.make_submission(), problem)
    for change in ({}, {"size": "standard"}, {"world_size": 4}, {"profile": "upstream"}):
        run = factory.make_run(kernel, **change)
        factory.finish(run, factory.make_report(run))
    assert [row.made for row in Summary.objects.all()] == [1, 1, 1, 1]
    assert len(ProblemAggregate.objects.settings()) == 4


def test_rebuilding_the_summary_changes_nothing(problem: Problem) -> None:
    for model, verdicts in (("A", "ok build_error"), ("B", "timeout ok")):
        submission = factory.make_submission(model, k=2)
        for verdict in verdicts.split():
            factory.make_judged(submission, problem, Verdict(verdict))
    before = [_stored(kind) for kind in KINDS]
    assert summary.rebuild() == len(before[0]) == 2
    assert [_stored(kind) for kind in KINDS] == before


def test_pandas_agrees_where_a_baseline_lies_between_two_roundings(problem: Problem) -> None:
    submission = factory.make_submission(k=2)
    for attempt, baseline_us in enumerate((159.865, 159.866), 1):
        source = f"{factory.SOURCE}# {attempt}\n"
        kernel = factory.make_kernel(submission, problem, source=source, attempt=attempt)
        run = factory.make_run(kernel)
        timing = replace(make_timing(1.3), baseline_us=baseline_us)
        factory.finish(run, factory.make_report(run, timing=timing))
    assert summary_check.differences() == []


def test_pandas_finds_a_wrong_summary(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    Summary.objects.update(best_speedup=9.0)
    assert len(summary_check.differences()) == 1
    Summary.objects.all().delete()
    assert len(summary_check.differences()) == 1


def test_pandas_finds_a_wrong_leaderboard_row(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    row = LeaderboardRow.objects.get()
    total, in_categories = json.loads(row.total), json.loads(row.by_category)
    total["sums"]["pass_at_1"] += 0.5
    LeaderboardRow.objects.update(total=json.dumps(total))
    assert len(summary_check.differences()) == 1
    in_categories["tensor"]["utilisation"] = 0.5
    LeaderboardRow.objects.update(total=row.total, by_category=json.dumps(in_categories))
    assert len(summary_check.differences()) == 1
    LeaderboardRow.objects.all().delete()
    assert len(summary_check.differences()) == 4


def test_pandas_finds_a_wrong_threshold(run: Run) -> None:
    factory.finish(run, factory.make_report(run, speedup=2.0))
    row = LeaderboardRow.objects.get()
    assert summary_check.differences() == []
    nothing = {name: [0.0] * len(values) for name, values in json.loads(row.by_threshold).items()}
    LeaderboardRow.objects.update(by_threshold=json.dumps(nothing))
    assert len(summary_check.differences()) == 1


def test_pandas_finds_a_wrong_aggregate_of_a_problem(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    ProblemAggregate.objects.update(usual_utilisation=0.9)
    assert len(summary_check.differences()) == 1
    ProblemAggregate.objects.update(usual_utilisation=None, made=2)
    assert len(summary_check.differences()) == 1
    ProblemAggregate.objects.all().delete()
    assert len(summary_check.differences()) == 1


@pytest.mark.parametrize("hidden", ["moderation", "visibility", "baseline"])
def test_what_staff_take_off_the_board_leaves_its_problems(hidden: str, problem: Problem) -> None:
    """And comes back with it."""
    slow, fast = factory.make_submission("Slow"), factory.make_submission("Fast")
    factory.make_judged(slow, problem, speedup=1.2)
    best = factory.make_judged(fast, problem, speedup=2.5)
    shown = _stored(ProblemAggregate)
    staff = factory.make_user("staff")
    if hidden == "moderation":
        moderation.moderate(fast, staff, Moderation.DISPUTED, "It copies.")
    elif hidden == "visibility":
        moderation.show(fast, staff, Visibility.UNLISTED)
    else:
        moderation.edit(fast.model, staff, is_baseline=True)
    row = ProblemAggregate.objects.get()
    assert (row.submissions, row.solved, row.best_speedup) == (1, 1, 1.2)
    assert (row.made, row.correct, row.faster, sum(row.modes.values())) == (1, 1, 1, 1)
    assert row.run_id != best.pk
    assert summary_check.differences() == []
    moderation.moderate(fast, staff, Moderation.ACCEPTED, "")
    moderation.show(fast, staff, Visibility.PUBLIC)
    moderation.edit(fast.model, staff, is_baseline=False)
    assert _stored(ProblemAggregate) == shown
    assert shown[0][8:10] == (2, 2)


def test_a_reference_alone_is_timed_and_solves_nothing(problem: Problem) -> None:
    reference = factory.make_submission("PyTorch + NCCL")
    run = factory.make_judged(reference, problem, speedup=1.0)
    moderation.edit(reference.model, reference.owner, is_baseline=True)
    row = ProblemAggregate.objects.get()
    assert (row.submissions, row.solved, row.best_speedup, row.run_id) == (0, 0, None, run.pk)
    assert summary_check.differences() == []
    moderation.show(reference, reference.owner, Visibility.PRIVATE)
    assert not ProblemAggregate.objects.exists()


def test_a_hidden_result_changes_no_aggregate_of_a_problem(problem: Problem) -> None:
    factory.make_judged(factory.make_submission("Seen"), problem, speedup=1.2)
    before = _stored(ProblemAggregate)
    hidden = factory.make_submission("Secret", visibility=Visibility.PRIVATE)
    factory.make_judged(hidden, problem, speedup=9.0)
    assert _stored(ProblemAggregate) == before


def test_pandas_finds_wrong_cells(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    row = LeaderboardRow.objects.get()
    columns = json.loads(row.cells)
    columns["best_speedup"] = [3.0]
    LeaderboardRow.objects.update(cells=json.dumps(columns))
    assert len(summary_check.differences()) == 1
    outcomes = json.loads(row.outcomes)
    outcomes["problems"][0] |= {"speedups": [2.5], "lows": [1.5]}
    LeaderboardRow.objects.update(cells=row.cells, outcomes=json.dumps(outcomes))
    assert len(summary_check.differences()) == 1


def test_a_leaderboard_row_says_what_the_summary_says(db: None) -> None:
    submission = factory.make_submission(k=3)
    for number in (2, 1):
        problem = factory.make_problem(number, f"problem{number}")
        for speedup, verdict in ((1.2, Verdict.OK), (1.0, Verdict.TIMEOUT), (2.5, Verdict.OK)):
            factory.make_judged(submission, problem, verdict, speedup)
    row = LeaderboardRow.objects.get()
    rows = Summary.objects.order_by("problem_id")
    assert cells_in(row.cells) == tuple(
        cell_of(one.problem_id, one.problem.category, one.attempts) for one in rows
    )
    parts = list(parts_of(json.loads(row.outcomes)))
    for one, known in zip(rows, parts, strict=True):
        assert list(known.speedups) == one.speedups == [1.2, 2.5]
        assert known.made == row.made / 2 == 3
    assert [part.ended for part in parts] == [["correct", "deadlock", "correct"]] * 2
    assert json.loads(row.total)["modes"] == {"deadlock": 2, "correct": 4}


def test_rows_of_many_results_agree_with_pandas(db: None) -> None:
    """Three problems, one of them not scored; attempts, steps of time and settings at random."""
    draw = random.Random(7)
    problems = [factory.make_problem(n, f"p{n}", category) for n, category in enumerate("aab", 1)]
    Problem.objects.filter(number=3).update(scored=False, unscored_reason="No reference.")
    for name in ("A", "B", "C"):
        submission = factory.make_submission(name, k=draw.choice((1, 3, 5)))
        for _ in range(12):
            verdict = draw.choice((Verdict.OK, Verdict.OK, Verdict.TIMEOUT, Verdict.BUILD_ERROR))
            kernel = factory.make_judged(
                submission, draw.choice(problems), verdict, draw.uniform(0.3, 3)
            ).kernel
            again = factory.make_run(kernel, size=draw.choice(("tiny", "standard")))
            floors = RooflineBounds(
                wire_us=draw.uniform(1, 9), hbm_us=draw.uniform(1, 9), flops_us=2, latency_us=0
            )
            report = factory.make_report(again, speedup=draw.uniform(0.3, 3), floors=floors)
            factory.finish(again, report)
    assert summary_check.differences() == []
    assert {row.attempted for row in LeaderboardRow.objects.all()} <= {1, 2}
    before = [_stored(kind) for kind in KINDS]
    assert all(before)
    summary.rebuild()
    assert [_stored(kind) for kind in KINDS] == before


def test_a_problem_that_is_no_longer_scored_leaves_the_leaderboard_rows(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    Problem.objects.update(scored=False, unscored_reason="No reference.")
    summary.rebuild()
    assert Summary.objects.count() == 1
    assert not LeaderboardRow.objects.exists()


def test_a_problem_that_a_new_catalogue_takes_out_meanwhile_enters_no_row(run: Run) -> None:
    factory.finish(run, factory.make_report(run))
    read = Run.objects.select_related("kernel__problem").get()
    Problem.objects.update(scored=False, unscored_reason="No reference.")
    summary.rebuild()
    summary.update(read)
    assert not LeaderboardRow.objects.exists()


def _stored(kind: type[Model]) -> list[tuple[Any, ...]]:
    columns = [field.attname for field in kind._meta.fields if field.name != "id"]
    return list(kind._default_manager.values_list(*columns))


def _rows_at(submission: Submission) -> dict[tuple[int, str], list[int]]:
    """Return made and correct attempts by problem and placement."""
    rows = Summary.objects.filter(submission=submission)
    found = rows.values_list("problem_id", "placement", "made", "correct")
    return {(problem, placement): counts for problem, placement, *counts in found}


def test_a_kernel_that_failed_the_check_counts_as_failed_where_others_are_timed(
    problem: Problem,
) -> None:
    other = factory.make_problem(2, "gemm", "expert")
    submission = factory.make_submission()
    failed = factory.make_judged(submission, other, Verdict.OUTPUT_MISMATCH, placement="shared")
    factory.make_judged(submission, problem, placement="shared")
    assert _rows_at(submission) == {(1, "shared"): [1, 1], (2, "shared"): [1, 0]}
    timed = factory.make_judged(submission, problem)
    checked = {(1, "shared"): [1, 1], (2, "shared"): [1, 0]}
    assert _rows_at(submission) == {**checked, (1, "full"): [1, 1], (2, "full"): [1, 0]}
    row = Summary.objects.get(problem=other, placement="full")
    assert row.attempts[0]["run"] == str(failed.id)
    board = LeaderboardRow.objects.get(placement="full")
    assert (board.attempted, board.solved) == (2, " 10")
    aggregate = ProblemAggregate.objects.get(problem=other, placement="full")
    assert (aggregate.submissions, aggregate.solved) == (1, 0)
    assert summary_check.differences() == []
    before = [_stored(kind) for kind in KINDS]
    summary.rebuild()
    assert [_stored(kind) for kind in KINDS] == before
    rulings.rule(timed, factory.make_user(), Moderation.INVALIDATED, "not what it says")
    assert _rows_at(submission) == checked
    assert summary_check.differences() == []


def test_a_failure_is_not_taken_over_where_the_kernel_ran_or_passed_elsewhere(
    problem: Problem,
) -> None:
    other, third = (factory.make_problem(n, f"p{n}") for n in (2, 3))
    submission = factory.make_submission()
    ran = factory.make_judged(submission, problem, Verdict.TIMEOUT, placement="shared")
    run = factory.make_run(ran.kernel)
    factory.finish(run, factory.make_report(run))
    assert Summary.objects.get(placement="full").correct == 1
    once = factory.make_judged(submission, other, Verdict.TIMEOUT, placement="shared")
    assert Summary.objects.filter(placement="full", problem=other).exists()
    again = factory.make_run(once.kernel, placement="shared", world_size=4)
    factory.finish(again, factory.make_report(again))
    assert not Summary.objects.filter(placement="full", problem=other).exists()
    factory.make_judged(submission, third, Verdict.TIMEOUT, placement="shared", size="standard")
    assert not Summary.objects.filter(placement="full", problem=third).exists()
    assert summary_check.differences() == []


def test_a_failure_is_not_taken_over_by_too_few_ranks(problem: Problem) -> None:
    ring = factory.make_problem(2, "ring")
    Problem.objects.filter(pk=ring.pk).update(ranked_from=4, ranked_from_reason="cp is 1")
    submission = factory.make_submission()
    factory.make_judged(submission, problem)
    kernel = factory.make_kernel(submission, ring)
    run = factory.make_run(kernel, placement="shared", world_size=4)
    factory.finish(run, factory.make_report(run, Verdict.TIMEOUT))
    assert _rows_at(submission) == {(1, "full"): [1, 1], (2, "shared"): [1, 0]}
    assert summary.rebuild() == 2
    assert summary_check.differences() == []


def test_a_problem_with_a_kernel_that_passed_waits_to_be_timed(problem: Problem) -> None:
    other = factory.make_problem(2, "gemm", "expert")
    submission = factory.make_submission(k=2)
    factory.make_judged(submission, other, Verdict.TIMEOUT, placement="shared")
    passed = factory.make_judged(submission, other, placement="shared")
    factory.make_judged(submission, problem)
    assert (2, "full") not in _rows_at(submission)
    run = factory.make_run(passed.kernel)
    factory.finish(run, factory.make_report(run))
    assert _rows_at(submission)[2, "full"] == [2, 1]
    assert summary_check.differences() == []


def test_a_timed_run_that_counts_nowhere_takes_no_failures_over(problem: Problem) -> None:
    unscored = factory.make_problem(2, "toy")
    Problem.objects.filter(pk=unscored.pk).update(scored=False, unscored_reason="a toy")
    submission = factory.make_submission()
    factory.make_judged(submission, problem, Verdict.TIMEOUT, placement="shared")
    factory.make_judged(submission, unscored)
    assert set(_rows_at(submission)) == {(1, "shared"), (2, "full")}
    third = factory.make_problem(3, "third")
    factory.make_judged(submission, third)
    assert set(_rows_at(submission)) == {(n, "full") for n in (1, 2, 3)} | {(1, "shared")}
    assert summary_check.differences() == []


def test_a_check_on_processors_says_nothing_of_gpus(problem: Problem) -> None:
    Hardware.objects.create(slug="h200x2", title="2 x H200", device="cuda", max_world_size=2)
    other = factory.make_problem(2, "gemm", "expert")
    submission = factory.make_submission()
    factory.make_judged(submission, other, Verdict.TIMEOUT, placement="shared")
    kernel = factory.make_kernel(submission, problem)
    run = factory.make_run(kernel, hardware_id="h200x2")
    factory.finish(run, factory.make_report(run))
    assert set(_rows_at(submission)) == {(1, "full"), (2, "shared")}
    assert summary_check.differences() == []
