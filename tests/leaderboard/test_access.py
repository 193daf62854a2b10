"""Who may do what: tokens, scopes, visibility, moderation, throttles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from leaderboard.api.access import ReadThrottle, SubmitThrottle
from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    AuditEntry,
    Hardware,
    Moderation,
    Problem,
    Run,
    Scope,
    Submission,
    Summary,
    Visibility,
)
from leaderboard.submissions import moderation
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.running import claim

HELLO = {
    **{"host": "h", "hardware": "2 x CPU", "queue": "cpu", "isolation": "bwrap"},
    **{"versions": {"torch": "2.13.0"}, "judge_version": "1"},
}


def _bearer(text: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=text)
    return client


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer", "Basic YTpi", "Bearer \udcff"])
def test_a_bad_token_is_refused_even_for_reading(problem: Problem, header: str) -> None:
    answer = _bearer(header).get("/api/v1/problems")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "bad_token")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_expired_revoked_and_orphaned_tokens_are_refused(owner: User) -> None:
    issue = ApiToken.objects.issue
    expired, first = issue(scope=Scope.READ, name="a", owner=owner, lifetime=timedelta(days=1))
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    revoked, second = issue(scope=Scope.READ, name="b", owner=owner)
    ApiToken.objects.filter(pk=revoked.pk).revoke()
    _, third = issue(scope=Scope.READ, name="c", owner=owner)
    assert _bearer(f"Bearer {third}").get("/api/v1/problems").status_code == 200
    User.objects.filter(pk=owner.pk).update(is_active=False)
    for text in (first, second, third):
        assert _bearer(f"Bearer {text}").get("/api/v1/problems").status_code == 401


def test_a_token_is_kept_as_a_digest_only(owner: User) -> None:
    token, text = ApiToken.objects.issue(scope=Scope.READ, name="a", owner=owner)
    assert text.startswith(token.prefix)
    assert len(text) == 4 + 43  # 256 bits in base64
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM leaderboard_apitoken")
        assert text not in str(cursor.fetchall())


SUBMIT, CANCEL, HELLO_URL = "submissions", "runs/{run}/cancel", "worker/hello"


@pytest.mark.parametrize(
    ("who", "path", "refusal"),
    [
        ("nobody", SUBMIT, "no_token"),
        ("nobody", CANCEL, "no_token"),
        ("nobody", HELLO_URL, "no_token"),
        ("owner:read", SUBMIT, "wrong_scope"),
        ("owner:read", CANCEL, "wrong_scope"),
        ("owner:submit", HELLO_URL, "wrong_scope"),
        ("other:submit", CANCEL, "wrong_scope"),
        ("worker", SUBMIT, "wrong_scope"),
        ("worker", CANCEL, "wrong_scope"),
        ("owner:submit", CANCEL, None),
        ("staff:submit", CANCEL, None),
        ("worker", HELLO_URL, None),
    ],
)
def test_everybody_may_do_what_the_scope_says(
    run: Run, api: Api, who: str, path: str, refusal: str | None
) -> None:
    name, _, scope = who.partition(":")
    if name == "nobody":
        client = api()
    elif name == "worker":
        client = api(scope=Scope.WORKER)
    else:
        user = factory.make_staff() if name == "staff" else factory.make_user(name)
        client = api(user, Scope(scope))
    answer = client.post(f"/api/v1/{path.format(run=run.id)}", HELLO, format="json")
    assert answer.json().get("error", {}).get("code") == refusal
    assert answer.status_code == {"no_token": 401, "wrong_scope": 403, None: 200}[refusal]


@pytest.mark.parametrize(
    ("name", "status", "is_asked_for"), [("owner", 409, False), ("staff", 200, True)]
)
def test_only_staff_may_end_a_run_that_is_under_way(
    run: Run, api: Api, name: str, status: int, is_asked_for: bool
) -> None:
    user = factory.make_staff() if name == "staff" else factory.make_user(name)
    claim(run)
    answer = api(user, Scope.SUBMIT).post(f"/api/v1/{CANCEL.format(run=run.id)}", format="json")
    assert answer.status_code == status
    assert Run.objects.get().cancel_requested is is_asked_for


def _seen(client: Any, run: Run) -> list[int]:
    submission = Submission.objects.get()
    paths = (
        f"runs/{run.id}",
        f"submissions/{submission.address}",
        f"kernels/{run.kernel.source_id}",
    )
    return [client.get(f"/api/v1/{path}").status_code for path in paths]


def _listed(client: Any) -> list[int]:
    lists = (client.get(f"/api/v1/{path}").json() for path in ("runs", "submissions"))
    return [len(page["results"]) for page in lists]


@pytest.mark.parametrize(
    ("visibility", "who", "expected"),
    [
        ("private", "nobody", (404, 0)),
        ("private", "other", (404, 0)),
        ("private", "worker", (404, 0)),
        ("private", "owner", (200, 1)),
        ("private", "staff", (200, 1)),
        ("unlisted", "nobody", (200, 0)),
        ("unlisted", "other", (200, 0)),
        ("unlisted", "owner", (200, 1)),
        ("public", "nobody", (200, 1)),
    ],
)
def test_everybody_sees_what_the_visibility_says(
    run: Run, api: Api, visibility: str, who: str, expected: tuple[int, int]
) -> None:
    Submission.objects.update(visibility=visibility)
    users = {name: factory.make_user(name) for name in ("owner", "other")}
    users["staff"] = factory.make_staff()
    client = api(users.get(who), Scope.WORKER if who == "worker" else None)
    assert _seen(client, run) == [expected[0]] * 3
    assert _listed(client) == [expected[1]] * 2


def test_a_private_submission_gives_away_nothing(run: Run, client: Client) -> None:
    factory.finish(run, factory.make_report(run))
    assert len(client.get("/api/v1/models").json()) == 1
    assert len(client.get("/api/v1/leaderboard").json()["rows"]) == 1
    moderation.show(run.kernel.submission, factory.make_user("staff"), Visibility.PRIVATE)
    assert client.get("/api/v1/models").json() == []
    assert client.get("/api/v1/leaderboard").json()["rows"] == []
    assert client.get(f"/api/v1/runs/{run.id}/report").status_code == 404


def test_moderation_leaves_the_rankings_keeps_the_evidence_and_is_logged(
    run: Run, staff: User, client: Client
) -> None:
    factory.finish(run, factory.make_report(run))
    submission = run.kernel.submission
    with pytest.raises(RequestError):
        moderation.moderate(submission, staff, Moderation.DISPUTED, " ")
    moderation.moderate(submission, staff, Moderation.DISPUTED, "Reads the oracle.")
    assert not Summary.objects.ranked().exists()
    assert _seen(client, run) == [200, 200, 200]
    answer = client.get(f"/api/v1/submissions/{submission.pk}").json()
    assert answer["moderation_reason"] == "Reads the oracle."
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == (staff, "moderate")
    assert entry.detail["before"]["moderation"] == "accepted"


@pytest.mark.parametrize(
    "facts",
    [
        *("[]", '"x"', "null", '{"calibration": 1}', '{"calibration": {"measurements": [1]}}'),
        *('{"pair_gb_s": "fast"}', '{"environment": {"versions": [1]}}', '{"other": 1}'),
    ],
)
def test_hardware_facts_that_no_page_can_show_are_refused(
    problem: Problem, client: Client, facts: str
) -> None:
    client.force_login(User.objects.create_superuser("root"))
    page = "/admin/leaderboard/hardware/cpu/change/"
    assert client.post(page, {"title": "CPU", "facts": facts}).status_code == 200
    assert Hardware.objects.get(pk="cpu").facts == {}
    good = {"title": "CPU", "facts": '{"pair_gb_s": 20.5, "environment": {"versions": {"a": "1"}}}'}
    assert client.post(page, good).status_code == 302
    assert Hardware.objects.get(pk="cpu").facts["pair_gb_s"] == 20.5
    assert client.get("/hardware/cpu").status_code == 200


def test_staff_moderates_in_the_admin_and_deletes_nothing(run: Run, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    pk = run.kernel.submission_id
    page = f"/admin/leaderboard/submission/{pk}/change/"
    form = {"visibility": "public", "moderation": "invalidated", "moderation_reason": "A cheat."}
    assert client.post(page, form).status_code == 302
    assert Submission.objects.get().moderation == "invalidated"
    assert AuditEntry.objects.count() == 1
    model = run.kernel.submission.model_id
    edited = {"name": "Better Name", "vendor": "V"}
    assert (
        client.post(f"/admin/leaderboard/languagemodel/{model}/change/", edited).status_code == 302
    )
    assert AuditEntry.objects.filter(action="edit").get().detail["after"] == edited
    for name in ("submission", "run", "kernel", "problem", "auditentry", "apitoken"):
        assert client.get(f"/admin/leaderboard/{name}/").status_code == 200
        row = {"submission": pk, "run": run.pk, "kernel": run.kernel_id, "problem": 1}.get(name)
        if row:
            delete = client.post(f"/admin/leaderboard/{name}/{row}/delete/", {"post": "yes"})
            assert delete.status_code == 403


def test_an_answer_to_a_token_is_nobody_elses(run: Run, api: Api, owner: User) -> None:
    answer = api(owner).get("/api/v1/submissions")
    assert answer["Cache-Control"].startswith("private")
    assert "Authorization" in answer["Vary"]


@pytest.mark.parametrize(
    ("throttle", "method", "path"),
    [(ReadThrottle, "get", "problems"), (SubmitThrottle, "post", "submissions")],
)
def test_too_many_requests_are_told_when_to_come_back(
    submitter: APIClient, monkeypatch: Any, throttle: Any, method: str, path: str
) -> None:
    monkeypatch.setattr(throttle, "rate", "2/min", raising=False)
    answers = [getattr(submitter, method)(f"/api/v1/{path}") for _ in range(3)]
    assert [answer.status_code == 429 for answer in answers] == [False, False, True]
    assert answers[2].json()["error"]["code"] == "throttled"
    assert int(answers[2]["Retry-After"]) > 0
    assert getattr(APIClient(), method)(f"/api/v1/{path}").status_code != 429
