"""Practice runs: judged like any other, after all that is ranked, and counted nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from evaluator.messages.report import Verdict
from leaderboard.models import LeaderboardRow, Problem, Run, Submission, Summary, Trust
from leaderboard.models.staleness import stale
from leaderboard.models.waiting import ahead_of
from leaderboard.publishing import snapshot_tables
from leaderboard.read_model import summary
from leaderboard.runs import evaluation, hosts
from leaderboard.runs.claims import LeaseLost
from tests.leaderboard import factory
from tests.leaderboard.conftest import Bells
from tests.leaderboard.running import HELLO, claim, decline, fresh, report_of, say_hello
from tests.leaderboard.uploads import GOOD, ONE, URL, Send, make_zip

pytestmark = pytest.mark.server

PRACTICE: dict[str, Any] = {**ONE, "practice": True}


def _run(problem: Problem, *, is_practice: bool, **changes: Any) -> Run:
    made = factory.make_submission()
    Submission.objects.filter(pk=made.pk).update(is_practice=is_practice, trust=Trust.SELF_REPORTED)
    made.refresh_from_db()
    return factory.make_run(factory.make_kernel(made, problem), **changes)


def _judge(run: Run, host: str = "host-1") -> None:
    """Have a host claim it and find it right."""
    evaluation.finish(run.pk, claim(run, host).holding, report_of(run))


@pytest.fixture
def practice(problem: Problem) -> Run:
    """A queued practice run, of a submission that is public."""
    return _run(problem, is_practice=True)


def test_it_is_its_owners_alone_unless_said_otherwise(send: Send, client: Client) -> None:
    answer = send(PRACTICE)
    assert answer.status_code == 201, answer.json()
    made = Submission.objects.get()
    assert (made.is_practice, made.visibility) == (True, "private")
    assert client.get(f"{URL}/{made.pk}").status_code == 404
    assert send({**PRACTICE, "visibility": "unlisted"}).status_code == 201
    newest = Submission.objects.latest("pk")
    assert client.get(f"{URL}/{newest.address}").json()["practice"] is True
    (run,) = Run.objects.filter(kernel__submission=newest)
    assert client.get(f"/api/v1/runs/{run.pk}").json()["practice"] is True


def test_what_intake_refuses_is_refused(send: Send) -> None:
    assert send({**PRACTICE, "source": "x = 1"}).status_code == 400
    assert send({**PRACTICE, "practice": "perhaps"}).status_code == 400
    assert not Submission.objects.exists()


def test_an_archive_can_be_practice(send: Send) -> None:
    files = {f"attempt_{k}/1_allreduce_pytorch.py": GOOD for k in (1, 2)}
    about = {"model": "GPT-5.5", "harness": "repeated", "practice": "true"}
    assert send(about, make_zip(files)).status_code == 201
    assert Submission.objects.get().is_practice


def test_a_key_says_the_same_again_but_not_as_ranked(send: Send) -> None:
    key = {"Idempotency-Key": "one"}
    first, again = send(PRACTICE, **key), send(PRACTICE, **key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert send(ONE, **key).status_code == 409


def test_no_more_wait_at_a_time_than_the_quota(send: Send, settings: LazySettings) -> None:
    settings.PKB_PRACTICE_RUNS = 2
    key = {"Idempotency-Key": "first"}
    assert send(PRACTICE, **key).status_code == 201
    assert send(PRACTICE).status_code == 201
    full = send(PRACTICE)
    assert full.status_code == 429
    assert full.json()["error"]["code"] == "practice_quota"
    assert int(full.headers["Retry-After"]) > 0
    assert send(PRACTICE, **key).status_code == 200
    assert send(ONE).status_code == 201
    assert Submission.objects.count() == 3
    factory.start(Run.objects.filter(kernel__submission__is_practice=True)[0])
    assert send(PRACTICE).status_code == 429
    oldest = Run.objects.filter(kernel__submission__is_practice=True).earliest("created_at")
    factory.finish(oldest, factory.make_report(oldest))
    assert send(PRACTICE).status_code == 201


def test_an_archive_beyond_the_quota_is_told_so_for_good(
    send: Send, settings: LazySettings
) -> None:
    settings.PKB_PRACTICE_RUNS = 1
    files = {f"attempt_{k}/1_allreduce_pytorch.py": GOOD for k in (1, 2)}
    answer = send({"model": "GPT-5.5", "harness": "repeated", "practice": "true"}, make_zip(files))
    assert answer.status_code == 400
    assert "2 kernels" in answer.json()["error"]["message"]


def test_the_quota_is_each_accounts_own(
    send: Send, other: User, settings: LazySettings, api: Any
) -> None:
    settings.PKB_PRACTICE_RUNS = 1
    assert send(PRACTICE).status_code == 201
    assert api(other).post(URL, PRACTICE, format="json").status_code == 201


def test_it_counts_nowhere_even_when_it_is_public(practice: Run, client: Client) -> None:
    _judge(practice)
    assert fresh(practice).verdict == "ok"
    assert not Run.objects.counted().exists()
    summary.rebuild()
    assert not Summary.objects.exists()
    assert not LeaderboardRow.objects.exists()
    assert not Submission.objects.ranked().exists()
    made = practice.kernel.submission
    made.refresh_from_db()
    assert made.trust == Trust.SELF_REPORTED
    assert "Model One" not in client.get("/leaderboard.json").content.decode()
    assert f"/submissions/{made.pk}" not in client.get("/feed.atom").content.decode()
    assert "practice" in client.get(f"/badges/submissions/{made.pk}.svg").content.decode()
    for table in (snapshot_tables._submissions, snapshot_tables._kernels, snapshot_tables._runs):
        assert not table().exists()


def test_a_ranked_run_beside_it_counts(problem: Problem, practice: Run) -> None:
    ranked = _run(problem, is_practice=False)
    _judge(ranked)
    _judge(practice)
    assert [run.pk for run in Run.objects.counted()] == [ranked.pk]
    assert Summary.objects.get().submission_id == ranked.kernel.submission_id


def test_pages_say_that_it_is_practice(practice: Run, client: Client) -> None:
    waiting = client.get(f"/runs/{practice.pk}").content.decode()
    assert '<span class="chip">practice</span>' in waiting
    _judge(practice)
    assert (
        "A practice run: it does not count." in client.get(f"/runs/{practice.pk}").content.decode()
    )
    digest = practice.kernel.source_id
    assert "A practice run" in client.get(f"/kernels/{digest}").content.decode()
    address = f"/submissions/{practice.kernel.submission_id}"
    page = client.get(address).content.decode()
    assert "counts nowhere" in page
    assert "pass@1" not in page
    assert "a practice run: does not count" in page
    found = client.get(f"{address}.json").json()
    assert found["practice"] is True
    assert [(one["counts"], one["why_not"]) for one in found["kernels"]] == [
        (False, "a practice run")
    ]
    assert "does not count 1" in page


def test_its_owner_may_publish_it_later(submitter: APIClient, practice: Run) -> None:
    number = practice.kernel.submission_id
    Submission.objects.filter(pk=number).update(visibility="private")
    _judge(practice)
    address = f"{URL}/{number}"
    for wanted in ("public", "private"):
        answer = submitter.patch(address, {"visibility": wanted}, format="json")
        assert answer.status_code == 200, answer.json()
        assert answer.json()["visibility"] == wanted
    assert not Summary.objects.exists()


def test_what_is_outdated_of_it_is_not_judged_again(practice: Run) -> None:
    _judge(practice)
    Problem.objects.update(digest="0" * 64)
    assert not stale(Run.objects.all()).exists()


def test_ranked_runs_go_first_under_load(problem: Problem, bells: Bells) -> None:
    first = [_run(problem, is_practice=True) for _ in range(3)]
    ranked = [_run(problem, is_practice=False) for _ in range(3)]
    assert [ahead_of(fresh(run)) for run in (*first, *ranked)] == [3, 4, 5, 0, 1, 2]
    say_hello(HELLO)
    assert [run_id for run_id, _ in bells] == [run.pk for run in ranked[: hosts.RINGS_PER_HOST]]
    for run in ranked:
        with pytest.raises(LeaseLost):
            claim(first[0])
        _judge(run)
    assert [fresh(run).tries for run in first] == [0, 0, 0]
    bells.clear()
    say_hello(HELLO)
    assert bells[0] == (first[0].pk, "cpu")
    _judge(first[0])
    assert fresh(first[0]).verdict == Verdict.OK


def test_a_ranked_run_that_is_not_for_this_host_is_not_waited_for(
    problem: Problem, practice: Run
) -> None:
    say_hello(replace(HELLO, abilities=[]))
    decline(_run(problem, is_practice=False), "h")
    elsewhere = _run(problem, is_practice=False)
    hosts.register("cpu-arm", "another CPU")
    Run.objects.filter(pk=elsewhere.pk).update(hardware="cpu-arm")
    unable = _run(problem, is_practice=False)
    Run.objects.filter(pk=unable.pk).update(needs=" multicast ")
    assert claim(practice, "h").tries == 1
