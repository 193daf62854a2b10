"""A run that waits again says why, how long it has waited, and who may cancel it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from leaderboard.models import Run, Submission
from leaderboard.models.waiting import tried, waited_s
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    kernel = factory.make_kernel(factory.make_submission(), factory.make_problem())
    return factory.make_run(kernel)


def aged(run: Run, **columns: object) -> Run:
    """Asked for ten minutes ago, and tried eight minutes ago."""
    now = timezone.now()
    known = {"created_at": now - timedelta(minutes=10), "started_at": now - timedelta(minutes=8)}
    Run.objects.filter(pk=run.pk).update(**{**known, **columns})
    run.refresh_from_db()
    return run


def test_a_run_that_was_tried_says_when_why_and_when_it_is_tried_again(
    run: Run, client: Client
) -> None:
    assert tried(run) is None
    now = timezone.now()
    error = "the judge was away for 3 s while it took times"
    again = aged(run, tries=1, last_error=error, rung_at=now)
    assert again.started_at is not None
    began, then = f"{again.started_at:%H:%M} UTC", f"{now + timedelta(seconds=30):%H:%M} UTC"
    said = tried(again)
    assert said is not None
    assert said.startswith(f"Tried once at {began}: the host was too noisy to time it.")
    assert said.endswith(f"Next try after {then} (try 2 of 3); it costs the kernel nothing.")
    assert said in client.get(f"/runs/{run.id}").text
    assert client.get(f"/runs/{run.id}.json").json()["tried"] == said
    assert client.get(f"/api/v1/runs/{run.id}").json()["tried"] == said


def test_what_an_error_quotes_is_not_shown(run: Run, client: Client) -> None:
    aged(run, tries=2, last_error="Traceback: secret", rung_at=None)
    page = client.get(f"/runs/{run.id}").text
    assert "Tried 2 times, last at" in page
    assert "the judge failed, for a reason of ours. Next try" in page
    assert "secret" not in page


def test_a_wait_counts_from_the_submission_on_page_api_and_status(run: Run, client: Client) -> None:
    aged(run, tries=1, last_error="host-1 went silent.")
    assert 599 <= waited_s(run) <= 610
    told = [
        client.get(f"/runs/{run.id}.json").json()["waiting_s"],
        client.get(f"/api/v1/runs/{run.id}").json()["waiting_s"],
        client.get("/api/v1/status").json()["queues"][0]["oldest_waiting_s"],
    ]
    assert max(told) - min(told) <= 2
    assert abs(told[0] - waited_s(run)) <= 2
    factory.start(run)
    aged(run)
    assert waited_s(run) == 120
    assert client.get(f"/api/v1/runs/{run.id}").json()["waiting_s"] == 120


@pytest.mark.parametrize(
    ("who", "while_waiting", "while_running"),
    [("", False, False), ("owner", True, False), ("other", False, False), ("staff", True, True)],
)
def test_only_who_may_cancel_is_offered_to(
    run: Run, client: Client, who: str, while_waiting: bool, while_running: bool
) -> None:
    factory.make_staff()
    factory.make_user("other")
    if who:
        client.force_login(User.objects.get(username=who))
    page, asked = client.get(f"/runs/{run.id}").text, f"/runs/{run.id}/cancel.json"
    assert f'<p data-cancel hidden><a class="button plain" href="/runs/{run.id}/cancel"' in page
    assert client.get(asked).json() == {"may_cancel": while_waiting}
    factory.start(run)
    assert client.get(asked).json() == {"may_cancel": while_running}


def test_nobody_hears_of_a_private_run_by_asking_who_may_cancel_it(
    run: Run, client: Client
) -> None:
    Submission.objects.update(visibility="private")
    client.force_login(factory.make_user("other"))
    assert client.get(f"/runs/{run.id}/cancel.json").status_code == 404
