"""The second factor: anybody may have one, and staff must where that is asked."""

from __future__ import annotations

import base64
import hmac
import re
import struct
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, TestCase

from leaderboard.models import AuditEntry, Run
from tests.leaderboard.people import PASSWORD, QUICK, is_in, link_in_mail, log_in, person


@pytest.fixture
def ada(db: None, settings: Any) -> User:
    settings.PASSWORD_HASHERS = QUICK
    return person(is_staff=True, is_superuser=True)


def code_of(secret: str, steps: int = 0) -> str:
    """Return what an app shows (RFC 6238), so many half minutes from now."""
    counter = struct.pack(">Q", int(time.time()) // 30 + steps)
    digest = hmac.digest(base64.b32decode(secret), counter, "sha1")
    (number,) = struct.unpack_from(">I", digest, digest[-1] & 15)
    return f"{(number & 0x7FFFFFFF) % 10**6:06}"


def set_up(client: Client) -> tuple[str, list[str]]:
    """Set one up as a reader does; return its secret and the recovery codes."""
    page = client.get("/account/second-factor/set-up", follow=True)
    assert page.redirect_chain
    asked = {"password": PASSWORD, "next": "/account/second-factor/set-up"}
    page = client.post("/account/reauthenticate", asked, follow=True)
    assert 'src="data:image/svg+xml;base64,' in page.text
    (secret,) = re.findall(r"<code>([A-Z2-7]{32})</code>", page.text)
    assert "Incorrect code" in client.post("/account/second-factor/set-up", {"code": "1"}).text
    with TestCase.captureOnCommitCallbacks(execute=True):
        form = {"code": code_of(secret)}
        page = client.post("/account/second-factor/set-up", form, follow=True)
    (codes,) = re.findall(r'<pre class="log">(.*?)</pre>', page.text, re.DOTALL)
    return secret, codes.split()


def test_logging_in_asks_for_a_code_which_is_good_once(client: Client, ada: User) -> None:
    earlier = Client()
    for one in (earlier, client):
        log_in(one)
    secret, recovery = set_up(client)
    assert len(recovery) == 10
    assert not is_in(earlier)
    text = client.get("/account/second-factor/recovery-codes.txt").text
    assert text.split() == recovery
    assert "no-store" in client.get("/account/second-factor/recovery-codes")["Cache-Control"]
    other = Client()
    assert log_in(other)["Location"] == "/account/second-factor/code"
    assert not is_in(other)
    assert "Incorrect code" in other.post("/account/second-factor/code", {"code": "000"}).text
    other.post("/account/second-factor/code", {"code": code_of(secret, 1)})
    assert is_in(other)
    for is_good in (True, False):
        third = Client()
        log_in(third)
        third.post("/account/second-factor/code", {"code": recovery[0]})
        assert is_in(third) is is_good
    assert "9 recovery codes" in client.get("/account/second-factor").text
    client.post("/account/second-factor/remove")
    fourth = Client()
    log_in(fourth)
    assert is_in(fourth)


def test_a_password_reset_by_mail_does_not_get_around_it(client: Client, ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    log_in(client)
    set_up(client)
    other = Client()
    other.post("/account/password/reset", {"email": "ada@example.org"})
    form = other.get(link_in_mail("ada@example.org"))["Location"]
    new = dict.fromkeys(("password1", "password2"), "another-kernel-8")
    assert other.post(form, new)["Location"] == "/account/second-factor/code"
    assert not is_in(other)


def test_staff_without_one_can_only_set_it_up(run: Run, ada: User, settings: Any) -> None:
    client = Client()
    log_in(client)
    assert client.get("/admin/").status_code == 200
    settings.REQUIRE_SECOND_FACTOR_OF_STAFF = True
    for page in ("/admin/", "/rejudge", "/account", "/account/worker-tokens", "/submit"):
        assert client.get(page)["Location"] == "/account/second-factor/set-up"
    assert client.post("/rejudge")["Location"] == "/account/second-factor/set-up"
    for page in ("/", f"/runs/{run.id}", "/api/v1/runs", "/account/second-factor"):
        assert client.get(page).status_code == 200
    set_up(client)
    for page in ("/admin/", "/rejudge", "/account"):
        assert client.get(page).status_code == 200
    person("bob")
    bob = Client()
    log_in(bob, "bob")
    assert is_in(bob)


def test_pages_for_all_ask_for_nobody(run: Run, ada: User, settings: Any) -> None:
    settings.REQUIRE_SECOND_FACTOR_OF_STAFF = True
    client = Client()
    client.force_login(ada)
    assert client.get("/")["Vary"] == "Accept-Encoding"


def test_an_operator_takes_a_lost_one_away(client: Client, ada: User) -> None:
    log_in(client)
    set_up(client)
    call_command("remove_second_factor", "ada")
    other = Client()
    log_in(other)
    assert is_in(other)
    assert AuditEntry.objects.get().action == "remove second factor"
