"""What an owner may do with what was handed in: withdraw it, have it judged again, and find
it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from leaderboard.models import (
    AuditEntry,
    Moderation,
    Run,
    Status,
    Submission,
    Visibility,
)
from leaderboard.submissions import moderation
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.uploads import act

pytestmark = pytest.mark.django_db

HOSTILE = "<b onclick=x>\u202e"


def test_what_is_withdrawn_is_reachable_and_ranks_nowhere(
    judged: Run, submitter: APIClient, client: Client
) -> None:
    found = judged.kernel.submission
    second = factory.make_judged(factory.make_submission("Second"), judged.kernel.problem)
    waiting = factory.make_run(factory.make_kernel(found, factory.make_problem(2, "allgather")))
    assert "Fast One" in client.get("/").content.decode()
    told = act(submitter, found, "withdraw", reason=HOSTILE).json()
    assert (told["moderation"], told["moderation_reason"]) == ("withdrawn", HOSTILE)
    assert told["withdrawn_at"]
    for address in ("/", "/leaderboard.json", "/feed.atom", "/matrix", "/api/v1/leaderboard"):
        assert "Fast One" not in client.get(address).content.decode(), address
    problem = client.get("/problems/1-allreduce.json").json()
    assert [row["submission"] for row in problem["kernels"]] == [second.kernel.submission_id]
    page = client.get(f"/submissions/{found.pk}").content.decode()
    assert "Withdrawn by its owner on" in page
    assert "&lt;b onclick=x&gt;[U+202E]" in page
    assert "withdrawn" in client.get(f"/runs/{judged.pk}").content.decode()
    assert client.get(f"/submissions/{found.pk}.json").json()["withdrawn_at"]
    waiting.refresh_from_db()
    assert waiting.status == Status.CANCELLED


def test_withdrawing_leaves_a_trace_and_cannot_be_taken_back(
    judged: Run, submitter: APIClient, staff: User
) -> None:
    found = judged.kernel.submission
    assert act(submitter, found, "withdraw").status_code == 200
    found.refresh_from_db()
    assert found.moderation_reason == "No reason was given."
    for verb in ("withdraw", "publish"):
        assert act(submitter, found, verb).status_code in (200, 409)
    assert act(submitter, found, "rerun").json()["runs"] == 0
    assert Submission.objects.get(pk=found.pk).moderation == Moderation.WITHDRAWN
    moderation.moderate(found, staff, Moderation.ACCEPTED, "")
    found.refresh_from_db()
    assert found.withdrawn_at is not None
    assert [entry.action for entry in AuditEntry.objects.all()] == ["moderate", "withdraw"]


def test_staff_neither_withdraw_nor_publish_by_halves(judged: Run, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    page = f"/admin/leaderboard/submission/{judged.kernel.submission_id}/change/"
    told = {"visibility": "public", "moderation": "withdrawn", "moderation_reason": "Theirs."}
    answer = client.post(page, told, follow=True)
    assert "Nobody but its owner withdraws" in answer.content.decode()
    until = timezone.now() + timedelta(days=3)
    Submission.objects.update(visibility="private", public_from=until)
    client.post(page, {**told, "moderation": "accepted", "moderation_reason": ""})
    found = Submission.objects.get()
    assert (found.moderation, found.visibility) == (Moderation.ACCEPTED, Visibility.PUBLIC)
    assert found.public_from is None


def test_what_staff_dispute_is_not_withdrawn(judged: Run, api: Api, owner: User) -> None:
    found = judged.kernel.submission
    moderation.moderate(found, owner, Moderation.DISPUTED, "Reads the oracle.")
    assert act(api(owner), found, "withdraw").json()["error"]["code"] == "not_accepted"


@pytest.mark.parametrize("verb", ["withdraw", "publish", "rerun"])
@pytest.mark.parametrize("visibility", ["public", "private"])
def test_nobody_else_acts_on_a_submission(
    verb: str, visibility: str, judged: Run, api: Api, client: Client
) -> None:
    Submission.objects.update(visibility=visibility)
    found, other = judged.kernel.submission, factory.make_user("other")
    status = 403 if visibility == "public" else 404
    assert act(api(other), found, verb).status_code == status
    staff = User.objects.create_superuser("staff")
    assert act(api(staff), found, verb).status_code == 403
    assert act(api(), found, verb).status_code == 401
    client.force_login(other)
    if verb != "publish":
        assert client.post(f"/submissions/{found.pk}/{verb}").status_code == status
    assert Submission.objects.get().moderation == Moderation.ACCEPTED


def test_the_page_withdraws_and_says_when_it_cannot(judged: Run, client: Client) -> None:
    client.force_login(factory.make_user("owner"))
    page = f"/submissions/{judged.kernel.submission_id}"
    assert "You cannot take this back" in client.get(f"{page}/edit").content.decode()
    assert client.post(f"{page}/withdraw", {"reason": "A bug."})["Location"] == page
    again = client.post(f"{page}/withdraw")
    assert again.status_code == 409
    assert "withdrawn already" in again.content.decode()
    assert "You cannot take this back" not in again.content.decode()


def test_an_owner_has_judged_again_what_has_no_result(judged: Run, submitter: APIClient) -> None:
    found = judged.kernel.submission
    failed = factory.make_run(factory.make_kernel(found, factory.make_problem(2, "allgather")))
    failed_at = {"finished_at": timezone.now(), "message": "Ours."}
    Run.objects.filter(pk=failed.pk).update(status="failed", verdict="infra_error", **failed_at)
    assert act(submitter, found, "rerun").json() == {"runs": 1, "left_out": {}}
    assert act(submitter, found, "rerun").json()["runs"] == 0
    assert Run.objects.queued().get().kernel_id == failed.kernel_id
    Run.objects.queued().update(status="cancelled", verdict="cancelled", **failed_at)
    client = Client()
    client.force_login(factory.make_user("owner"))
    page = client.post(f"/submissions/{found.pk}/rerun").content.decode()
    assert "1 run queued" in page


@pytest.mark.parametrize("is_practice", [True, False])
def test_runs_are_judged_again_within_the_quota(
    is_practice: bool, run: Run, submitter: APIClient, settings: Any
) -> None:
    quota = "PKB_PRACTICE_RUNS" if is_practice else "PKB_QUEUED_RUNS_PER_ACCOUNT"
    setattr(settings, quota, 0)
    Submission.objects.update(is_practice=is_practice)
    ended = {"status": "cancelled", "verdict": "cancelled", "message": "Ended."}
    Run.objects.update(finished_at=timezone.now(), **ended)
    answer = act(submitter, run.kernel.submission, "rerun")
    assert answer.json()["error"]["code"] == ("practice_quota" if is_practice else "queue_quota")
    assert not Run.objects.queued().exists()


def test_an_account_lists_its_own(run: Run, api: Api, owner: User, other: User) -> None:
    theirs = factory.make_run(
        factory.make_kernel(factory.make_submission("Theirs", owner="other"), run.kernel.problem)
    )
    for user, own in ((owner, run), (other, theirs)):
        runs = api(user).get("/api/v1/runs?mine=1").json()["results"]
        assert [row["id"] for row in runs] == [str(own.pk)]
        rows = api(user).get("/api/v1/submissions?mine=1").json()["results"]
        assert [row["id"] for row in rows] == [own.kernel.submission_id]
    assert api().get("/api/v1/runs?mine=1").status_code == 401
    assert api(owner).get("/api/v1/runs?mine=yes").status_code == 400
    client = Client()
    client.force_login(owner)
    assert "<td>1 run to come</td>" in client.get("/account").content.decode()
