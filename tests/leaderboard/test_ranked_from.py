"""Results on fewer ranks than a problem is ranked from are shown and count nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evaluator.messages.report import Verdict
from leaderboard.models import (
    Hardware,
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
    Summary,
    WorkerHost,
)
from leaderboard.models.staleness import too_few_ranks
from leaderboard.read_model import summary
from tests.leaderboard import factory, running
from tests.leaderboard.uploads import ABOUT, GOOD, ONE, Send, make_zip

pytestmark = pytest.mark.django_db
WHY = "judged on 2 ranks, ranked from 4"
REASON = "on two ranks cp is 1"
SENTENCE = f"Judged on 2 ranks, ranked from 4: it does not count, because {REASON}."


@pytest.fixture
def ring() -> Problem:
    """A problem that is ranked from four ranks, beside one that is ranked from two."""
    factory.make_problem(1)
    made = factory.make_problem(2, "ring")
    made.ranked_from, made.ranked_from_reason = 4, REASON
    made.save()
    return made


@pytest.fixture
def submission(ring: Problem) -> Submission:
    """Both problems solved on two ranks, the one of them on four as well."""
    made = factory.make_submission()
    for problem, sizes in ((Problem.objects.get(pk=1), (2,)), (ring, (2, 4))):
        kernel = factory.make_kernel(made, problem)
        for world_size in sizes:
            run = factory.make_run(kernel, world_size=world_size)
            factory.finish(run, factory.make_report(run))
    return made


def run_on(world_size: int) -> Run:
    return Run.objects.get(kernel__problem=2, world_size=world_size)


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize(
    ("world_size", "ranked_from", "why"),
    [(2, 2, ""), (4, 4, ""), (8, 4, ""), (2, 4, WHY), (None, 4, "")],
)
def test_too_few_ranks_are_told(world_size: int | None, ranked_from: int, why: str) -> None:
    assert too_few_ranks(world_size, ranked_from) == why


def counted() -> set[tuple[int, int]]:
    return set(Summary.objects.values_list("problem_id", "world_size"))


def test_nothing_is_summed_up_of_too_few_ranks(submission: Submission) -> None:
    for _ in range(2):
        assert counted() == {(1, 2), (2, 4)}
        rows = LeaderboardRow.objects.values_list("world_size", "attempted")
        assert set(rows) == {(2, 1), (4, 1)}
        stood = ProblemAggregate.objects.values_list("problem_id", "world_size", "solved")
        assert set(stood) == {(1, 2, 1), (2, 4, 1)}
        summary.rebuild()


def test_a_catalogue_that_ranks_from_fewer_counts_them(submission: Submission) -> None:
    Problem.objects.update(ranked_from=2)
    summary.rebuild()
    assert counted() == {(1, 2), (2, 2), (2, 4)}


def test_a_failure_on_too_few_ranks_counts_as_little(ring: Problem) -> None:
    run = factory.make_run(factory.make_kernel(factory.make_submission(), ring))
    factory.finish(run, factory.make_report(run, Verdict.OUTPUT_MISMATCH))
    assert not Summary.objects.exists()


def test_shares_are_of_the_problems_that_are_ranked_there(
    submission: Submission, client: Client
) -> None:
    for world_size, scored in ((2, 1), (4, 2)):
        where = f"?ranks={world_size}"
        board = client.get(f"/leaderboard.json{where}").json()
        assert [row["scored"] for row in board["rows"]] == [scored]
        own = client.get(f"/submissions/{submission.pk}.json{where}").json()
        assert (own["score"]["scored"], own["score"]["correct"]) == (scored, 1)
        category = client.get(f"/categories/tensor.json{where}").json()
        assert sum(one["scored"] for one in category["problems"]) == scored
        compared = client.get(f"/compare.json{where}&a={submission.pk}&b={submission.pk}")
        assert compared.status_code == 200


def test_a_submission_says_why_a_result_does_not_count(
    submission: Submission, client: Client
) -> None:
    told = client.get(f"/submissions/{submission.pk}.json?ranks=2").json()
    assert {row["number"]: row["why_not"] for row in told["kernels"]} == {1: None, 2: WHY}
    assert [row["counts"] for row in told["kernels"]] == [True, False]
    assert f"{WHY}: does not count" in text_of(client, f"/submissions/{submission.pk}?ranks=2")


def test_the_pages_of_run_and_problem_say_it(submission: Submission, client: Client) -> None:
    assert SENTENCE in text_of(client, run_on(2).get_absolute_url())
    assert "ranked from" not in text_of(client, run_on(4).get_absolute_url())
    kernel = f"/kernels/{run_on(2).kernel.source_id}?run="
    assert SENTENCE in text_of(client, f"{kernel}{run_on(2).pk}")
    page = text_of(client, "/problems/2-ring")
    assert f"Ranked from 4 ranks.</b> Runs on fewer ranks are not scored, because {REASON}." in page
    assert "Ranked from" not in text_of(client, "/problems/1-allreduce")


@pytest.fixture
def gpus(ring: Problem) -> None:
    """GPU hosts of two and four ranks, of which none serves."""
    for problem in Problem.objects.all():
        problem.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
        problem.save()
    for slug, most in (("h200x2", 2), ("h200x4", 4)):
        Hardware.objects.create(slug=slug, title=slug, device="cuda", max_world_size=most)


def serve(queue: str) -> None:
    """A host that serves a class of hardware now."""
    facts = {"hardware": queue, "isolation": "bwrap", "judge_version": "10", "host": "h"}
    token = running.worker_token()
    WorkerHost.objects.create(last_seen_at=timezone.now(), token=token, queue=queue, **facts)


def handed_in(send: Send, problem: int, **fields: object) -> tuple[dict[str, Any], Run]:
    backend = {"backend": "triton"} if "device" not in fields else {}
    answer = send({**ONE, "problem": str(problem), **backend, **fields})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    return body, Run.objects.get(pk=body["runs"][0]["id"])


def test_the_fewest_ranks_that_are_ranked_are_chosen(gpus: None, send: Send) -> None:
    body, run = handed_in(send, 1)
    assert (run.hardware_id, run.world_size, run.size) == ("h200x2", 2, "standard")
    body, run = handed_in(send, 2)
    assert (run.hardware_id, run.world_size) == ("h200x4", 4)
    assert body["not_scored"] == {}


def test_hardware_that_a_host_serves_goes_first(gpus: None, send: Send) -> None:
    serve("h200x4")
    _, run = handed_in(send, 1)
    assert (run.hardware_id, run.world_size) == ("h200x4", 4)


def test_the_kernels_of_an_archive_share_a_setting(gpus: None, send: Send) -> None:
    """One that is ranked from four ranks takes the others there, not to a board of its own."""
    files = {f"{name}_triton.py": GOOD for name in ("1_allreduce", "2_ring")}
    answer = send(ABOUT, make_zip(files))
    assert answer.status_code == 201, answer.content
    runs = Run.objects.filter(pk__in=[run["id"] for run in answer.json()["runs"]])
    assert {(run.hardware_id, run.world_size) for run in runs} == {("h200x4", 4)}


def test_kernels_go_apart_where_no_host_that_serves_can_rank_all(gpus: None, send: Send) -> None:
    serve("h200x2")
    files = {f"{name}_triton.py": GOOD for name in ("1_allreduce", "2_ring")}
    answer = send(ABOUT, make_zip(files))
    runs = Run.objects.filter(pk__in=[run["id"] for run in answer.json()["runs"]])
    assert sorted(run.world_size for run in runs) == [2, 4]


def test_before_the_wait_a_run_says_that_it_is_not_scored(
    gpus: None, send: Send, client: Client
) -> None:
    factory.make_run(factory.make_kernel(factory.make_submission(), Problem.objects.get(pk=1)))
    body, run = handed_in(send, 2, device="cpu")
    said = (
        "Practice: not scored. It runs on 2 ranks; the problem is ranked from 4, because"
        f" {REASON}. Submit it for GPUs with 4 ranks to have it scored."
    )
    assert body["not_scored"] == {str(run.pk): said}
    assert client.get(f"/api/v1/runs/{run.pk}").json()["not_scored"] == said
    assert said in text_of(client, f"/runs/{run.pk}")
    _, ranked = handed_in(send, 1, device="cpu")
    assert "not scored" not in text_of(client, f"/runs/{ranked.pk}")


def test_a_run_that_ended_without_a_verdict_is_not_called_judged(
    ring: Problem, client: Client
) -> None:
    run = factory.make_run(factory.make_kernel(factory.make_submission(), ring))
    ended = {"status": "failed", "verdict": "infra_error", "message": "It failed 3 times."}
    Run.objects.filter(pk=run.pk).update(**ended, finished_at=timezone.now())
    page = text_of(client, f"/runs/{run.pk}")
    assert "It failed 3 times." in page
    assert "Judged on" not in page
    assert "<dt>Ended</dt>" in page
