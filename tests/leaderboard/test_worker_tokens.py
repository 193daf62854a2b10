"""Tokens of judging hosts, made on a page; and of all tokens, when they were last used."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from leaderboard.models import ApiToken, AuditEntry, Problem, Scope
from tests.leaderboard.conftest import Api
from tests.leaderboard.test_worker_api import HELLO

pytestmark = pytest.mark.server

PAGE = "/account/worker-tokens"
FORM = {
    "name": "rack 4",
    "lifetime": "90",
    "queues": "h300x4, cpu",
    "hosts": "gpu-1, gpu-2",
    "groups": "2",
}


@pytest.fixture
def maker(problem: Problem, client: Client) -> Client:
    """Staff who may make tokens."""
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="add_apitoken"))
    client.force_login(user)
    return client


def test_a_token_is_shown_once_and_good_for_what_it_says(maker: Client) -> None:
    assert "No tokens of judging hosts" in maker.get(PAGE).text
    shown = maker.post(PAGE, FORM)
    (text,) = re.findall(r"<code>(pkb_\S+)</code>", shown.text)
    assert text not in maker.get(PAGE).text
    token = ApiToken.objects.get()
    assert (token.scope, token.owner, token.queues) == (Scope.WORKER, None, ["h300x4", "cpu"])
    assert token.hosts == ["gpu-1", "gpu-2"]
    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - timezone.now() < timedelta(days=91)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject) == ("make", f"token {token.prefix}")
    assert entry.detail == {
        "name": "rack 4",
        "queues": ["h300x4", "cpu"],
        "hosts": ["gpu-1", "gpu-2"],
        "groups": 2,
    }
    worker = APIClient(headers={"authorization": f"Bearer {text}"})
    said = [
        worker.post("/api/v1/worker/hello", {**HELLO, "host": host}, format="json").status_code
        for host in ("gpu-2", "gpu-3")
    ]
    assert said == [200, 403]


def test_a_token_is_revoked_there_and_noted(maker: Client, owner: User) -> None:
    maker.post(PAGE, FORM)
    token = ApiToken.objects.get()
    assert maker.post(f"{PAGE}/{token.pk}/revoke")["Location"] == PAGE
    assert not ApiToken.objects.valid().exists()
    assert "revoked" in maker.get(PAGE).text
    assert [entry.action for entry in AuditEntry.objects.all()] == ["revoke", "make"]
    other, _ = ApiToken.objects.issue(scope=Scope.READ, name="a", owner=owner)
    assert maker.post(f"{PAGE}/{other.pk}/revoke").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [{"queues": ", "}, {"queues": "h300"}, {"hosts": "a\u202e"}, {"hosts": "a," * 21}],
)
def test_a_form_that_says_nonsense_makes_nothing(maker: Client, wrong: dict[str, Any]) -> None:
    assert maker.post(PAGE, {**FORM, **wrong}).status_code == 400
    assert not ApiToken.objects.exists()


@pytest.mark.django_db
def test_it_is_for_those_with_the_permission(client: Client) -> None:
    staff = User.objects.create_user("clerk", is_staff=True)
    assert client.get(PAGE)["Location"] == f"/account/login?next={PAGE}"
    client.force_login(staff)
    assert PAGE not in client.get("/account").text
    for answer in (client.get(PAGE), client.post(PAGE, FORM), client.post(f"{PAGE}/1/revoke")):
        assert answer.status_code == 403


def test_the_last_use_of_a_token_is_written_once_a_minute(
    owner: User, api: Api, problem: Problem, django_assert_num_queries: Any
) -> None:
    client = api(owner)
    client.get("/api/v1/problems")
    token = ApiToken.objects.get()
    first = token.last_used_at
    assert first is not None
    assert timezone.now() - first < timedelta(seconds=30)
    browser = Client()
    browser.force_login(owner)
    assert f"{first:%Y-%m-%d %H:%M}" in browser.get("/account").text
    client.get("/api/v1/problems")
    token.refresh_from_db()
    assert token.last_used_at == first
    long_ago = timezone.now() - timedelta(minutes=2)
    ApiToken.objects.update(last_used_at=long_ago)
    client.get("/api/v1/problems")
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at > long_ago
    with django_assert_num_queries(0):
        ApiToken.objects.note_use(token)
