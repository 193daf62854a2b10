"""What is read when a result is stored does not grow with how many runs a site has."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Problem
from leaderboard.read_model import summary
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def test_a_result_is_summed_up_from_the_runs_of_its_kernels(problem: Problem) -> None:
    run = factory.make_judged(factory.make_submission(), problem)
    with CaptureQueriesContext(connection) as queries:
        summary.update(run)
    (asked,) = [one["sql"] for one in queries if ' FROM "leaderboard_run" ' in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked}")
        steps = [row[3] for row in cursor.fetchall()]
    (step,) = [step for step in steps if " leaderboard_run " in step]
    assert "run_of_kernel" in step, steps
