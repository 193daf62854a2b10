"""The smoke test of a site leads to a verdict, says why where it cannot, and shows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from evaluator.messages.report import Verdict
from leaderboard.kit.plain_names import is_of_the_site
from leaderboard.models import ApiToken, Problem, Run, Submission
from leaderboard.operations import readiness, smoke
from tests.leaderboard import factory
from tests.leaderboard.running import say_hello

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.server]


@pytest.fixture(autouse=True)
def _all_parts_are_there(monkeypatch: pytest.MonkeyPatch, problem: Problem) -> None:
    monkeypatch.setattr(readiness, "checks", lambda: {"schema": "ok", "broker": "ok"})


def _until_submitted(site: LiveServer, wait_s: float = 20.0) -> tuple[Iterator[smoke.Step], Run]:
    say_hello()
    steps = smoke.steps(site.url, smoke.Wanted(wait_s=wait_s))
    assert [next(steps).name for _ in range(4)] == ["parts", "address", "hosts", "submit"]
    return steps, Run.objects.get()


def test_a_kernel_goes_the_whole_way(live_server: LiveServer, client: Client) -> None:
    steps, run = _until_submitted(live_server)
    assert run.kernel.submission.is_practice
    assert client.get(f"/submissions/{run.kernel.submission_id}").status_code == 404
    factory.finish(run, factory.make_report(run))
    assert [step.name for step in steps] == ["judge", "page", "withdraw"]
    assert Submission.objects.get().moderation == "withdrawn"
    assert smoke.MODEL not in client.get("/").text


def test_nothing_stays_open(live_server: LiveServer) -> None:
    steps, run = _until_submitted(live_server)
    factory.finish(run, factory.make_report(run))
    assert list(steps)
    assert not ApiToken.objects.valid().filter(name="smoke").exists()
    assert not Session.objects.exists()
    owner = User.objects.get(username=smoke.ACCOUNT)
    assert not owner.has_usable_password()
    assert not owner.is_staff
    assert is_of_the_site(smoke.ACCOUNT)


def test_a_wrong_verdict_fails_and_is_withdrawn(live_server: LiveServer) -> None:
    steps, run = _until_submitted(live_server)
    factory.finish(run, factory.make_report(run, Verdict.OUTPUT_MISMATCH))
    with pytest.raises(smoke.SmokeError, match="judge: output_mismatch, not ok"):
        list(steps)
    assert Submission.objects.get().withdrawn_at


def test_a_host_that_does_not_judge_is_a_failure_with_a_time(live_server: LiveServer) -> None:
    steps, _ = _until_submitted(live_server, wait_s=0.0)
    with pytest.raises(smoke.SmokeError, match="the run is queued after 0 s"):
        list(steps)


def test_each_failure_names_its_step(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def fails(site: str, reason: str) -> None:
        with pytest.raises(CommandError, match=reason):
            call_command("smoke", site=site, wait=0.0, hosts=2)

    settings.PKB_PUBLIC_URL = ""
    fails("", "set PKB_PUBLIC_URL")
    fails(live_server.url, "hosts: 2 of a class have to serve, there is none")
    say_hello()
    fails(live_server.url, "there is cpu: h.")
    fails("http://127.0.0.1:9", "address: .* does not answer")
    monkeypatch.setattr(smoke._Visitor, "call", lambda *_: {"software_version": "0"})
    fails(live_server.url, "address: the site serves .* restart the site")
    monkeypatch.setattr(readiness, "checks", lambda: {"broker": "does not answer"})
    fails(live_server.url, "parts: broker does not answer")
