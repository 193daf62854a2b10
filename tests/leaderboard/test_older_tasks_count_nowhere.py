"""A kernel that was written for an older task is judged, says why it does not count, and counts
nowhere."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.test import Client

from evaluator import Verdict
from leaderboard.models import (
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
    Summary,
    Trust,
)
from leaderboard.models.staleness import stale
from leaderboard.publishing import snapshot_tables
from leaderboard.read_model import summary
from leaderboard.read_model.problem_results import has_older_results
from leaderboard.runs import evaluation
from leaderboard.site_pages.search_index import find
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.running import claim, fresh, report_of, say_hello

pytestmark = pytest.mark.server

AT_RANDOM = "which sampled neighbours at random"
WHY = f"written for an older task, {AT_RANDOM}"


def _queued(problem: Problem, older_task: str = AT_RANDOM) -> Run:
    made = factory.make_submission()
    Submission.objects.filter(pk=made.pk).update(trust=Trust.SELF_REPORTED)
    return factory.make_run(factory.make_kernel(made, problem, older_task=older_task))


@pytest.fixture
def older(problem: Problem) -> Run:
    """A right kernel for an older task, as a host reported it."""
    run = _queued(problem)
    evaluation.finish(run.pk, claim(run).holding, report_of(run))
    return fresh(run)


@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.OUTPUT_MISMATCH])
def test_it_is_neither_tried_nor_solved_nor_failed(problem: Problem, verdict: Verdict) -> None:
    run = _queued(problem)
    factory.finish(run, factory.make_report(run, verdict))
    for _ in range(2):
        assert not Run.objects.counted().exists()
        for table in (Summary, LeaderboardRow, ProblemAggregate):
            assert not table._default_manager.exists()
        summary.rebuild()
    assert not run.has_counted_verdict
    today = _queued(problem, "")
    factory.finish(today, factory.make_report(today, verdict))
    assert [one.pk for one in Run.objects.counted()] == [today.pk]
    assert ProblemAggregate.objects.get().submissions == 1


def test_it_backs_no_submission(older: Run) -> None:
    assert older.verdict == "ok"
    assert Submission.objects.get().trust == Trust.SELF_REPORTED


def test_it_is_not_judged_again_for_being_stale(older: Run) -> None:
    say_hello()
    problem = older.kernel.problem
    Problem.objects.update(digest="f" * 64)
    assert not stale(Run.objects.all()).exists()
    assert not has_older_results(problem)
    told = {}
    for words in (("--stale",), ("--problem", problem.slug)):
        out = io.StringIO()
        call_command("rejudge", *words, "--dry-run", stdout=out)
        told[words[0]] = out.getvalue()
    assert "0 runs would be queued" in told["--stale"]
    assert "1 runs would be queued" in told["--problem"]


def _page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def test_its_submission_lists_it_apart_and_says_why(older: Run, client: Client) -> None:
    made = older.kernel.submission
    alone = client.get(f"/submissions/{made.pk}.json").json()
    assert [(row["verdict"], row["why_not"]) for row in alone["kernels"]] == [("ok", WHY)]
    assert (alone["setting"], alone["score"]) == (None, None)
    factory.make_judged(made, factory.make_problem(2, "allgather"))
    told = client.get(f"/submissions/{made.pk}.json").json()
    by_number = {row["number"]: (row["counts"], row["why_not"]) for row in told["kernels"]}
    assert by_number == {1: (False, WHY), 2: (True, None)}
    assert (told["score"]["attempted"], told["score"]["correct"]) == (1, 1)
    rows = client.get(f"/submissions/{made.pk}.json?verdict=uncounted").json()["kernels"]
    assert [row["number"] for row in rows] == [1]
    text = _page(client, f"/submissions/{made.pk}")
    for words in ("does not count 1</a>", "ok 1</a>", "1 attempt does not count"):
        assert words in text
    assert f"{WHY}: does not count" in text
    listed = _page(client, f"/submissions/{made.pk}?verdict=uncounted")
    assert "Problem allreduce" in listed.partition('id="kernels"')[2]
    assert "Problem allgather" not in listed.partition('id="kernels"')[2]


def test_its_run_and_its_kernel_say_why(older: Run, client: Client, api: Api) -> None:
    sentence = f"W{WHY[1:]}: it does not count."
    kernel = f"/kernels/{older.kernel.source_id}"
    for address in (older.get_absolute_url(), f"{kernel}?run={older.pk}"):
        box = _page(client, address).partition('id="verdict"')[2].partition("</div>")[0]
        assert sentence in box
    pages = client.get(f"{kernel}.json").json()
    told = [
        client.get(f"/runs/{older.pk}.json").json(),
        client.get("/status.json").json()["recent"][0],
        api().get(f"/api/v1/runs/{older.pk}").json(),
        *api().get("/api/v1/runs").json()["results"],
        *pages["runs"],
        *pages["attempts"],
    ]
    assert [row["stale"] for row in told] == [WHY] * 6
    assert WHY in _page(client, "/status")
    (hit,) = (one for one in find(str(older.pk)) if one.kind == "Run")
    assert hit.note == f"Problem allreduce: ok, {WHY}"


def test_its_attempt_says_why(older: Run, client: Client, api: Api) -> None:
    address = f"/submissions/{older.kernel.submission_id}/1/attempt-1"
    assert f"{WHY}: does not count" in _page(client, address)
    for told in (f"{address}.json", f"/api/v1{address}"):
        assert [step["older_task"] for step in api().get(told).json()["steps"]] == [AT_RANDOM]


def test_a_run_that_waits_has_no_result_to_mark(problem: Problem, client: Client) -> None:
    assert client.get(f"/runs/{_queued(problem).pk}.json").json()["stale"] is None


def test_a_snapshot_tells_in_what_the_task_differed(older: Run) -> None:
    assert list(snapshot_tables._kernels().values_list("older_task", flat=True)) == [AT_RANDOM]
    assert [vars(run)["counts"] for run in snapshot_tables._runs()] == [False]
