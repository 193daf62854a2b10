"""What is read of the runs of few kernels does not grow with how many runs a site has."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Problem
from leaderboard.models.runs import SETTING
from leaderboard.problem_pages.records import timed_kernels
from leaderboard.read_model import summary
from leaderboard.read_model.setting import Setting
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


def test_a_result_is_summed_up_from_the_runs_of_its_kernels(problem: Problem) -> None:
    run = factory.make_judged(factory.make_submission(), problem)
    with CaptureQueriesContext(connection) as queries:
        summary.update(run)
    _check_index(queries)


def test_records_are_found_by_the_kernels_of_their_problem(problem: Problem) -> None:
    run = factory.make_judged(factory.make_submission(), problem)
    setting = Setting(**{name: getattr(run, name) for name in SETTING})
    with CaptureQueriesContext(connection) as queries:
        assert [one.run for one in timed_kernels(problem, setting)] == [run.pk]
    _check_index(queries)


def _check_index(queries: CaptureQueriesContext) -> None:
    asked = [one["sql"] for one in queries if ' FROM "leaderboard_run" ' in one["sql"]]
    assert asked
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = [row[3] for row in cursor.fetchall()]
        (step,) = [step for step in steps if " leaderboard_run " in step]
        assert "run_of_kernel" in step, steps
