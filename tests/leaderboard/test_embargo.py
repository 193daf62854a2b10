"""What is hidden until a date, and what is seen then."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from leaderboard.models import (
    AuditEntry,
    LanguageModel,
    Problem,
    Run,
    Submission,
    Visibility,
)
from leaderboard.runs import hosts
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.uploads import Send, act

pytestmark = pytest.mark.django_db

ONE = {"model": "Shy", "harness": "zero-shot", "problem": "allreduce", "backend": "pytorch"}


def test_an_embargo_ends_at_its_date_however_late_the_sweep_is(
    send: Send, client: Client, owner: User
) -> None:
    date = timezone.now() + timedelta(days=3)
    answer = send({**ONE, "source": factory.SOURCE, "public_from": date.isoformat()})
    found = Submission.objects.get(pk=answer.json()["submission"])
    assert found.visibility == Visibility.PRIVATE
    assert found.public_from == date.replace(second=0, microsecond=0)
    hosts.sweep()
    assert client.get(f"/submissions/{found.pk}").status_code == 404
    Submission.objects.update(public_from=timezone.now() - timedelta(days=9))
    call_command("sweep", verbosity=0)
    call_command("sweep", verbosity=0)
    published = Submission.objects.get()
    assert (published.visibility, published.public_from) == (Visibility.PUBLIC, None)
    assert published.published_at is not None
    assert "public since" in client.get(f"/submissions/{found.pk}").content.decode()
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.actor) == ("publish", None)
    client.force_login(owner)
    assert "<td>the site</td>" in client.get(f"/submissions/{found.pk}/edit").content.decode()


def embargo(found: Submission, **time: int) -> None:
    end = timezone.now() + timedelta(**time)
    Submission.objects.filter(pk=found.pk).update(visibility="private", public_from=end)


def test_its_owner_ends_an_embargo_by_a_word(judged: Run, submitter: APIClient) -> None:
    found = judged.kernel.submission
    embargo(found, days=3)
    told = act(submitter, found, "publish").json()
    assert submitter.get("/api/v1/submissions?mine=1").json()["results"] == [told]
    assert (told["visibility"], told["public_from"]) == ("public", None)
    assert told["published_at"]


def test_an_embargo_of_what_was_judged_becomes_shorter_only(
    judged: Run, submitter: APIClient
) -> None:
    found, address = judged.kernel.submission, f"/api/v1/submissions/{judged.kernel.submission_id}"
    embargo(found, days=3)
    now = timezone.now()
    for value, status in (
        (None, 409),
        ((now + timedelta(days=9)).isoformat(), 409),
        ((now - timedelta(days=1)).isoformat(), 400),
        ((now + timedelta(days=400)).isoformat(), 400),
        ((now + timedelta(days=2)).isoformat(), 200),
    ):
        answer = submitter.patch(address, {"public_from": value}, format="json")
        assert answer.status_code == status, value
    Submission.objects.update(public_from=None)
    later = (now + timedelta(days=2)).isoformat()
    answer = submitter.patch(address, {"public_from": later}, format="json")
    assert answer.json()["error"]["code"] == "embargo_fixed"
    assert act(submitter, found, "publish").json()["error"]["code"] == "visibility_fixed"


def test_what_nobody_has_judged_is_withdrawn_in_silence(run: Run, submitter: APIClient) -> None:
    embargo(run.kernel.submission, days=3)
    assert act(submitter, run.kernel.submission, "withdraw").status_code == 200
    hosts.sweep()
    found = Submission.objects.get()
    assert (found.visibility, found.public_from) == (Visibility.PRIVATE, None)


def test_nobody_publishes_the_best_of_several_unseen(
    problem: Problem, client: Client, api: Api
) -> None:
    """Three under an embargo, of which two are withdrawn once their results are known."""
    owner, page = factory.make_user("owner"), "/models/model-one"
    several = [factory.make_submission() for _ in range(3)]
    LanguageModel.objects.update(slug="model-one")
    for found in several:
        embargo(found, days=3)
        factory.make_judged(found, problem)
    for found in several[1:]:
        told = act(api(owner), found, "withdraw").json()
        assert (told["moderation"], told["visibility"]) == ("withdrawn", "private")
        assert told["public_from"]
        assert client.get(f"/submissions/{found.pk}").status_code == 404
    assert act(api(owner), several[0], "publish").status_code == 200
    assert (
        "2 other submissions of this model judged"
        in client.get(f"/submissions/{several[0].pk}").content.decode()
    )
    assert "withdrawn after judging" not in client.get(page).content.decode()
    Submission.objects.filter(visibility="private").update(public_from=timezone.now())
    hosts.sweep()
    for found in several[1:]:
        assert "Withdrawn by its owner" in client.get(f"/submissions/{found.pk}").content.decode()
    said = "3 submissions, of which 2 were withdrawn after judging."
    assert said in client.get(page).content.decode()
    assert client.get(f"{page}.json").json()["withdrawn_after_judging"] == 2
    first = client.get(f"/submissions/{several[0].pk}").content.decode()
    assert "judged that" not in first


def test_the_page_of_what_was_public_at_once_names_nothing_hidden(
    judged: Run, problem: Problem, client: Client
) -> None:
    hidden = factory.make_submission(visibility="private")
    factory.make_judged(hidden, problem)
    page = client.get(f"/submissions/{judged.kernel.submission_id}").content.decode()
    assert "hidden still" not in page


def test_what_is_public_has_no_embargo(send: Send) -> None:
    date = (timezone.now() + timedelta(days=3)).isoformat()
    for fields in ({"visibility": "public", "public_from": date}, {"public_from": "2020-01-01"}):
        answer = send({**ONE, "source": factory.SOURCE, **fields})
        assert answer.status_code == 400
        assert "public_from" in answer.json()["error"]["fields"]
    assert not Submission.objects.exists()


def test_an_embargo_is_set_and_ended_on_the_page(run: Run, client: Client) -> None:
    client.force_login(factory.make_user("owner"))
    page = f"/submissions/{run.kernel.submission_id}/edit"
    date = f"{timezone.now() + timedelta(days=30):%Y-%m-%dT%H:%M}"
    assert client.post(page, {"visibility": "private", "public_from": date}).status_code == 302
    assert f'value="{date}"' in client.get(page).content.decode()
    assert "public from" in client.get("/account").content.decode()
    factory.finish(run, factory.make_report(run))
    for told in ({"visibility": "private"}, {"visibility": "public", "public_from": "x"}):
        assert client.post(page, told).status_code in (400, 409)
    assert client.post(page, {"visibility": "public", "public_from": ""}).status_code == 302
    found = Submission.objects.get()
    assert (found.visibility, found.public_from) == (Visibility.PUBLIC, None)
