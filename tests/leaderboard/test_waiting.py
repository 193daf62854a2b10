"""What a run waits for: a host, its turn; how long it goes on; and how it is cancelled."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from evaluator.messages.report import Verdict
from leaderboard.models import HostState, Problem, Run, Status, Submission, WorkerHost
from leaderboard.models.choices import longest_s
from leaderboard.read_model.queue_counts import expected_wait_s
from leaderboard.runs.reports import columns_of
from tests.leaderboard import factory
from tests.leaderboard.running import say_hello, worker_token
from tests.leaderboard.uploads import ONE, Send

pytestmark = [pytest.mark.django_db, pytest.mark.server]


def told(run: Run, client: Client) -> str | None:
    said: str | None = client.get(f"/runs/{run.pk}.json").json()["no_host"]
    assert client.get(f"/api/v1/runs/{run.pk}").json()["no_host"] == said
    assert (said or " hidden data-unserved") in client.get(f"/runs/{run.pk}").content.decode()
    return said


def test_a_run_that_no_host_judges_says_so_and_when_one_was_seen(run: Run, client: Client) -> None:
    assert "none ever was heard from" in (told(run, client) or "")
    assert (
        "No host of cpu judges now"
        in client.get(f"/submissions/{run.kernel.submission_id}").content.decode()
    )
    say_hello()
    assert told(run, client) is None
    then = timezone.now() - timedelta(days=2)
    WorkerHost.objects.update(last_seen_at=then)
    assert f"{then:%Y-%m-%d %H:%M} UTC" in (told(run, client) or "")
    WorkerHost.objects.update(last_seen_at=timezone.now(), state=HostState.DRAINED)
    assert told(run, client), "it is alive and is given nothing"


def test_who_hands_in_hears_that_no_host_is_there(send: Send) -> None:
    (said,) = send(ONE).data["no_host"]
    assert "No host of cpu" in said
    say_hello()
    assert send({**ONE, "attempt": 2}).data["no_host"] == []


def test_a_run_that_is_judged_says_how_long_and_how_long_at_most(run: Run, client: Client) -> None:
    factory.start(run)
    Run.objects.update(started_at=timezone.now() - timedelta(seconds=75))
    record = client.get(f"/runs/{run.pk}.json").json()
    assert 75 <= record["elapsed_s"] < 80
    assert record["most_s"] == longest_s("cpu") == 1740
    page = client.get(f"/runs/{run.pk}").content.decode()
    assert '<span data-field="elapsed">1 min 1' in page
    assert "of at most 29 min" in page


def test_a_submission_tells_no_score_before_it_is_judged(problem: Problem, client: Client) -> None:
    made = factory.make_submission()
    waiting = factory.make_run(factory.make_kernel(made, problem))
    page = client.get(f"/submissions/{made.pk}").content.decode()
    assert "<b>1 kernel is still to be judged.</b>" in page
    assert "data-refresh" in page
    assert "pass@1" not in page
    factory.finish(waiting, factory.make_report(waiting, Verdict.OUTPUT_MISMATCH))
    page = client.get(f"/submissions/{made.pk}").content.decode()
    assert "data-refresh" not in page
    assert "<dt>pass@1</dt>" in page


def test_its_owner_cancels_a_run_that_waits(run: Run, client: Client) -> None:
    address = f"/runs/{run.pk}/cancel"
    assert f'href="{address}"' in client.get(f"/runs/{run.pk}").content.decode()
    assert client.get(address).status_code == 302, "to the login"
    client.force_login(factory.make_user("somebody"))
    assert client.post(address).status_code == 403
    client.force_login(run.kernel.submission.owner)
    assert "Cancel it" in client.get(address).content.decode()
    assert client.post(address).headers["Location"] == f"/runs/{run.pk}"
    assert Run.objects.get().status == Status.CANCELLED
    again = client.post(address)
    assert again.status_code == 409
    assert "The run is finished." in again.content.decode()


def test_nobody_hears_of_a_private_run_by_cancelling_it(run: Run, client: Client) -> None:
    Submission.objects.update(visibility="private")
    client.force_login(factory.make_user("somebody"))
    assert client.post(f"/runs/{run.pk}/cancel").status_code == 404


def test_a_queue_tells_hosts_depth_and_how_long_a_new_run_waits(run: Run, client: Client) -> None:
    (queue,) = client.get("/status.json").json()["queues"]
    names = ("queued", "hosts_alive", "last_seen", "expected_wait_s")
    assert [queue[name] for name in names] == [1, 0, None, None]
    assert "until a host is there" in client.get("/status").content.decode()
    say_hello()
    judged, now = factory.make_run(run.kernel), timezone.now()
    took = {"started_at": now - timedelta(seconds=30), "finished_at": now, "tries": 1}
    ended = {**took, **columns_of(factory.make_report(judged)), "token": worker_token()}
    Run.objects.filter(pk=judged.pk).update(status=Status.DONE, host="h", **ended)
    (queue,) = client.get("/status.json").json()["queues"]
    assert (queue["hosts_alive"], queue["expected_wait_s"]) == (1, 30)
    assert "about 30 s" in client.get("/status").content.decode()
    client.force_login(run.kernel.submission.owner)
    assert re.search(r"about 3\d s</option>", client.get("/submit").content.decode())


@pytest.mark.parametrize(
    ("ahead", "hosts", "took", "waits_s"),
    [(4, 2, 60, 120), (0, 1, 60, 0), (4, 0, 60, None), (4, 2, None, None)],
)
def test_a_wait_is_known_where_hosts_judge_and_have_judged(
    ahead: int, hosts: int, took: int | None, waits_s: int | None
) -> None:
    usual = None if took is None else timedelta(seconds=took)
    assert expected_wait_s(ahead, hosts, usual) == waits_s
