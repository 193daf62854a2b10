"""Rows of an older site keep what they told, and tell what is asked of them now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from evaluator.messages.profile import Evidence, Mechanism, Tag
from evaluator.messages.report import Verdict
from evaluator.messages.roofline_bounds import RooflineBounds
from leaderboard.models import Problem, ProblemStanding, Run, Standing, Summary
from tests.leaderboard import factory

BEFORE = [("leaderboard", "0003_decline")]
WITH_JSON = [("leaderboard", "0010_run_verdict")]
JSON_PARTS = [("leaderboard", "0018_judged_baselines")]
OLD_ENTRY = ("attempt", "run", "verdict", "cause", "speedup")
FLOORS = RooflineBounds(wire_us=7.0, hbm_us=3.0, flops_us=1.0, latency_us=2.0)
TMA = Mechanism(tag=Tag.TMA, evidence=Evidence.SASS, detail="UTMALDG")


@pytest.fixture
def newest(transactional_db: None) -> Iterator[None]:
    """The database ends as it began, whatever the test did."""
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("leaderboard"))


@pytest.mark.usefixtures("newest")
def test_results_of_before_are_carried_over(problem: Problem) -> None:
    submission = factory.make_submission(k=2)
    run = factory.make_run(factory.make_kernel(submission, problem))
    found: dict[str, Any] = {"floors": FLOORS, "mechanisms": (TMA, TMA), "flags": ("uses_nccl",)}
    factory.finish(run, factory.make_report(run, **found))
    factory.make_judged(submission, problem, Verdict.TIMEOUT)
    expected = _stored()
    assert expected["runs"][0]["utilisation"] == pytest.approx(7.0 * 1.3 / 100)

    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    old = executor.loader.project_state(BEFORE).apps.get_model("leaderboard", "Summary")
    for row in old.objects.all():
        row.attempts = [{name: entry[name] for name in OLD_ENTRY} for entry in row.attempts]
        row.save()
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("leaderboard"))
    assert _stored() == expected
    with pytest.raises(DatabaseError, match="append-only"):
        Run.objects.update(message="")


@pytest.mark.usefixtures("newest")
def test_totals_become_the_text_that_a_rebuild_writes() -> None:
    submission = factory.make_submission(k=2)
    for number, category in enumerate(("tensor", "data"), 1):
        factory.make_judged(submission, factory.make_problem(number, f"p{number}", category))
    expected = _stored()
    executor = MigrationExecutor(connection)
    executor.migrate(WITH_JSON)
    old = executor.loader.project_state(WITH_JSON).apps.get_model("leaderboard", "Standing")
    row = old.objects.get()
    assert list(row.by_category)
    row.by_category = dict(sorted(row.by_category.items(), reverse=True))
    row.save()
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("leaderboard"))
    assert _stored() == expected


@pytest.mark.usefixtures("newest")
def test_parts_of_problems_are_numbers_for_what_was_json(problem: Problem) -> None:
    fast, slow = factory.make_submission("Fast"), factory.make_submission("Slow")
    run = factory.make_judged(fast, problem, speedup=2.0)
    factory.make_judged(slow, problem, Verdict.TIMEOUT)
    expected = _stored()
    executor = MigrationExecutor(connection)
    executor.migrate(JSON_PARTS)
    old = executor.loader.project_state(JSON_PARTS).apps.get_model("leaderboard", "ProblemStanding")
    first, second = json.loads(old.objects.get().parts)
    assert first[:3] + first[4:5] + first[7:8] == [fast.pk, False, 1, 2.0, str(run.pk)]
    assert second[:8] == [slow.pk, False, 1, 0, None, None, None, None]
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("leaderboard"))
    assert _stored() == expected


def _stored() -> dict[str, list[Any]]:
    columns = [field.attname for field in Standing._meta.fields if field.name != "id"]
    return {
        "runs": [dict(row) for row in Run.objects.order_by("created_at").values()],
        "summaries": [dict(row) for row in Summary.objects.values()],
        "standings": [dict(row) for row in Standing.objects.values(*columns)],
        "parts": list(ProblemStanding.objects.order_by("problem_id").values_list("parts")),
    }
