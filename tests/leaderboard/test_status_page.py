"""What the judge is doing now, asked without reading all that it ever did."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from leaderboard.models import Decline, Problem, Run
from tests.leaderboard import factory
from tests.leaderboard.running import HELLO, say_hello

pytestmark = pytest.mark.server

FINISHED = '<dt>Finished in 24 h</dt><dd class="big">{}</dd>'


def judged(problem: Problem, number: int) -> None:
    submission = factory.make_submission()
    for _ in range(number):
        factory.make_judged(submission, problem)


def test_runs_that_wait_go_on_and_ended_are_counted_by_hardware(
    problem: Problem, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(problem, 2)
    with monkeypatch.context() as earlier:
        then = timezone.now() - timedelta(days=2)
        earlier.setattr("django.utils.timezone.now", lambda: then)
        judged(problem, 1)
    kernel = factory.make_kernel(factory.make_submission(), problem)
    factory.start(factory.make_run(kernel))
    for _ in range(2):
        factory.make_run(kernel)
    told = client.get("/status.json").json()
    (queue,) = told["queues"]
    names = ("hardware_id", "queued", "running", "finished")
    assert [queue[name] for name in names] == ["cpu", 2, 1, 2]
    assert told["finished_today"] == 2
    assert FINISHED.format(2) in client.get("/status").content.decode()


def test_the_longest_wait_is_said_for_people(run: Run, client: Client) -> None:
    since = timezone.now() - timedelta(seconds=200)
    Run.objects.filter(pk=run.pk).update(created_at=since)
    page = client.get("/status").content.decode()
    assert re.search(r'<dt>Longest wait</dt><dd class="big">3 min \d+ s</dd>', page)
    assert client.get("/status.json").json()["longest_wait_s"] >= 200


def test_a_busy_day_is_not_counted_to_its_end(
    problem: Problem, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(problem, 3)
    monkeypatch.setattr("leaderboard.site_pages.about.MOST_COUNTED", 3)
    assert FINISHED.format("3 or more") in client.get("/status").content.decode()
    monkeypatch.setattr("leaderboard.site_pages.about.MOST_COUNTED", 4)
    assert FINISHED.format("3") in client.get("/status").content.decode()


def test_the_newest_runs_lead_to_problem_and_submission(run: Run, client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        text = client.get("/status").content.decode()
    problem, submission = run.kernel.problem, run.kernel.submission
    assert f'<a href="/problems/{problem.number}-{problem.slug}">{problem}</a>' in text
    assert f'<a href="/submissions/{submission.pk}">' in text
    assert len([q for q in queries if '"leaderboard_problem"."slug"' in q["sql"]]) == 1


def test_declines_are_asked_for_only_where_a_run_waits(run: Run, client: Client) -> None:
    Decline.objects.create(run=run, host="h", reason="no triton", declined_at=timezone.now())
    with CaptureQueriesContext(connection) as waiting:
        assert "h declined: no triton" in client.get("/status").content.decode()
    factory.finish(run, factory.make_report(run))
    with CaptureQueriesContext(connection) as ended:
        assert "declined" not in client.get("/status").content.decode()
    assert len(ended) == len(waiting) - 1


def test_hosts_and_newest_runs_are_csv_too(run: Run, client: Client) -> None:
    say_hello(replace(HELLO, host="h1", versions={"torch": "2.13.0", "python": "3.11"}))
    (host,) = csv.DictReader(client.get("/status.csv?table=hosts").text.splitlines())
    assert (host["name"], host["queue"], host["alive"]) == ("h1", "cpu", "True")
    assert host["versions"] == "python 3.11, torch 2.13.0"
    (newest,) = csv.DictReader(client.get("/status.csv?table=recent").text.splitlines())
    assert (newest["id"], newest["status"]) == (str(run.pk), "queued")
    (queue,) = csv.DictReader(client.get("/status.csv").text.splitlines())
    assert (queue["hardware_id"], queue["queued"]) == ("cpu", "1")
    page = client.get("/status").text
    for name in ("hosts", "recent"):
        assert f'href="/status.csv?table={name}"' in page
    assert client.get("/status.json").json()["recent"][0]["id"] == str(run.pk)
    assert client.get("/status.csv?table=prices").status_code == 400
