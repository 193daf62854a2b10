"""The API's list of runs: what its filters let through, and by which index they are found."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator import Verdict
from leaderboard.models import Problem, Run, Visibility
from leaderboard.runs import evaluation
from tests.leaderboard import factory

pytestmark = pytest.mark.server

NEWEST, OF_VERDICT, OF_STATUS = "run_newest", "run_verdict", "run_ended"
OF_KERNEL = "run_of_kernel"


@pytest.fixture
def runs(problem: Problem) -> dict[str, str]:
    """What each is called, by id: two of one submission, and one each of another and a private."""
    one = factory.make_submission("One", k=2)
    other = factory.make_submission("Other")
    hidden = factory.make_submission("Hidden", visibility=Visibility.PRIVATE)
    second = factory.make_problem(2, "gemm")
    waiting = factory.make_run(factory.make_kernel(other, second))
    stopped = factory.make_run(factory.make_kernel(other, problem))
    evaluation.cancel(stopped)
    made = {
        "ok": factory.make_judged(one, problem),
        "slow": factory.make_judged(one, second, Verdict.TIMEOUT),
        "waiting": waiting,
        "stopped": stopped,
        "hidden": factory.make_judged(hidden, problem, Verdict.OOM),
    }
    return {str(run.pk): name for name, run in made.items()}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "slow ok stopped waiting"),
        ("verdict=ok", "ok"),
        ("verdict=oom", ""),
        ("status=done", "slow ok"),
        ("status=queued", "waiting"),
        ("status=cancelled", "stopped"),
        ("status=failed", ""),
        ("status=done&verdict=timeout", "slow"),
        ("status=cancelled&verdict=cancelled", "stopped"),
        ("status=cancelled&verdict=ok", ""),
        ("status=done&verdict=cancelled", ""),
        ("status=queued&verdict=ok", ""),
        ("problem=1", "ok stopped"),
        ("problem=gemm&status=done", "slow"),
        ("problem=1&verdict=timeout", ""),
        ("problem=1&verdict=cancelled", "stopped"),
        ("submission={one}", "slow ok"),
        ("submission={one}&verdict=timeout", "slow"),
        ("submission={one}&problem=1", "ok"),
        ("submission={one}&status=queued", ""),
    ],
)
def test_filters_narrow_the_list(
    runs: dict[str, str], client: Client, query: str, expected: str
) -> None:
    one = Run.objects.filter(verdict="ok").values_list("kernel__submission", flat=True)[0]
    answer = client.get("/api/v1/runs?" + query.format(one=one)).json()
    assert sorted(runs[row["id"]] for row in answer["results"]) == sorted(expected.split())


def test_unknown_filters_are_refused_all_at_once(db: None, client: Client) -> None:
    answer = client.get("/api/v1/runs?status=gone&verdict=okay&speed=1&placement=full")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], set(error["fields"])) == ("bad_query", {"status", "verdict", "speed"})
    assert "queued, running, done" in error["fields"]["status"]
    answer = client.get("/api/v1/runs?problem=alreduce")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_problem")


@pytest.mark.parametrize("query", ["", "verdict=build_error", "problem=1", "submission={one}"])
def test_pages_go_on_from_the_last_line(problem: Problem, client: Client, query: str) -> None:
    submission = factory.make_submission(k=53)
    asked = [
        factory.make_judged(submission, problem, Verdict.BUILD_ERROR).pk.hex for _ in range(53)
    ]
    first = client.get("/api/v1/runs?" + query.format(one=submission.pk)).json()
    second = client.get(first["next"]).json()
    again = client.get(second["previous"]).json()
    lines = first["results"] + second["results"]
    assert [line["id"].replace("-", "") for line in lines] == asked[::-1]
    assert again["results"] == first["results"]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("", NEWEST),
        ("status=done", NEWEST),
        ("verdict=oom", OF_VERDICT),
        ("status=done&verdict=oom", OF_VERDICT),
        ("status=failed", OF_VERDICT),
        ("status=cancelled", OF_VERDICT),
        ("status=queued", OF_STATUS),
        ("problem=1", OF_KERNEL),
        ("problem=1&verdict=oom", OF_KERNEL),
        ("problem=1&status=failed", OF_KERNEL),
        ("submission=1", OF_KERNEL),
        ("submission=1&verdict=oom", OF_KERNEL),
        ("submission=1&placement=full", OF_KERNEL),
        ("submission=1&problem=1&status=done", OF_KERNEL),
    ],
)
def test_no_filter_reads_all_runs(run: Run, client: Client, query: str, index: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/api/v1/runs?{query}").status_code == 200
    if connection.vendor != "sqlite":
        return  # its plans depend on how many rows there are
    with connection.cursor() as cursor:
        (asked,) = [one["sql"] for one in queries if "LIMIT 51" in one["sql"]]
        cursor.execute(f"EXPLAIN QUERY PLAN {asked}")
        steps = [row[3] for row in cursor.fetchall()]
    (step,) = [step for step in steps if " leaderboard_run " in step]
    assert index in step
