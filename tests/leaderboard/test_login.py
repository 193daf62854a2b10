"""Logging in: who may, how often they may fail, and where they are logged in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import caches
from django.core.cache.backends.db import DatabaseCache
from django.test import Client

from tests.leaderboard.people import PASSWORD, QUICK, is_in, link_in_mail, log_in, person

pytestmark = pytest.mark.usefixtures("ada")
TOO_MANY = "Too many attempts failed"


@pytest.fixture
def ada(db: None, settings: Any) -> User:
    settings.PASSWORD_HASHERS = QUICK
    return person()


def test_an_account_of_an_operator_needs_no_mail_to_log_in(client: Client, ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    answer = log_in(client, QUERY_STRING="next=/submit")
    assert (answer.status_code, answer["Location"]) == (302, "/submit")
    assert is_in(client)
    assert client.get("/account/email").status_code == 200  # where allauth notes the address
    client.post("/account/logout")
    assert not is_in(client)
    log_in(client)
    assert is_in(client)
    assert not mail.outbox


def test_nobody_else_is_let_in(client: Client, ada: User) -> None:
    for name, password in (("ada", "wrong"), ("nobody", PASSWORD), ("", "")):
        assert "notice bad" in (answer := log_in(client, name, password)).text or not name
        assert answer.status_code == 200
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert log_in(client)["Location"] == "/account/inactive"
    assert "switched this account off" in client.get("/account/inactive").text
    assert not is_in(client)
    elsewhere = log_in(client, QUERY_STRING="next=https://evil.example")
    assert "evil" not in elsewhere.get("Location", "")


def test_an_account_is_guessed_at_five_times_from_wherever(client: Client, settings: Any) -> None:
    settings.NUM_PROXIES = 1
    for turn in range(5):
        behind = {"HTTP_X_FORWARDED_FOR": f"6.6.6.6, 10.0.0.{turn}"}
        assert TOO_MANY not in log_in(client, password="wrong", **behind).text
    for name in ("ada", "ADA"):
        assert TOO_MANY in log_in(client, name, HTTP_X_FORWARDED_FOR="10.0.0.9").text
    person("bob")
    assert log_in(client, "bob", HTTP_X_FORWARDED_FOR="10.0.0.9").status_code == 302


def test_an_address_guesses_ten_times_at_whoever(client: Client, settings: Any) -> None:
    settings.NUM_PROXIES = 1
    for turn in range(10):
        behind = {"HTTP_X_FORWARDED_FOR": f"{turn}.1.1.1, 10.0.0.1"}
        assert TOO_MANY not in log_in(client, f"nobody{turn}", **behind).text
    assert TOO_MANY in log_in(client, HTTP_X_FORWARDED_FOR="9.9.9.9, 10.0.0.1").text
    assert log_in(client, HTTP_X_FORWARDED_FOR="10.0.0.2").status_code == 302


def test_another_process_counts_the_same_attempts(client: Client) -> None:
    for _ in range(5):
        log_in(client, password="wrong")
    known = caches.settings["default"]
    caches["default"] = DatabaseCache(known["LOCATION"], {"OPTIONS": known["OPTIONS"]})
    assert TOO_MANY in log_in(Client()).text


def test_the_admin_asks_for_the_same_log_in(client: Client, ada: User) -> None:
    posted = client.post("/admin/login/", {"username": "ada", "password": PASSWORD})
    assert posted["Location"].startswith("/account/login?next=")
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    assert client.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/account/login")
    log_in(client)
    assert client.get("/admin/").status_code == 200
    for table in ("mfa/authenticator", "account/emailaddress", "usersessions/usersession"):
        assert client.get(f"/admin/{table}/").status_code == 404


def test_a_password_is_reset_by_mail_and_the_link_is_good_once(client: Client, ada: User) -> None:
    log_in(Client())
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    sent = client.post("/account/password/reset", {"email": "ada@example.org"})
    unknown = client.post("/account/password/reset", {"email": "eve@example.org"})
    assert sent["Location"] == unknown["Location"] == "/account/password/reset/sent"
    assert [message.to for message in mail.outbox] == [["ada@example.org"], ["eve@example.org"]]
    del mail.outbox[1]
    link = link_in_mail("ada@example.org")
    form = client.get(link)["Location"]
    assert client.get(form).status_code == 200
    new = {"password1": "another-kernel-8", "password2": "another-kernel-8"}
    assert "too common" in client.post(form, dict.fromkeys(new, "password")).text
    assert client.post(form, new)["Location"] == "/account"
    assert "no longer good" in Client().get(link).text
    assert log_in(Client()).status_code == 200
    assert log_in(Client(), password="another-kernel-8").status_code == 302


def test_who_is_kept_out_by_others_guesses_gets_in_by_mail(client: Client, ada: User) -> None:
    log_in(Client())
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    for _ in range(6):
        log_in(Client(), password="wrong")
    assert TOO_MANY in log_in(client).text
    client.post("/account/password/reset", {"email": "ada@example.org"})
    form = client.get(link_in_mail("ada@example.org"))["Location"]
    client.post(form, dict.fromkeys(("password1", "password2"), "another-kernel-8"))
    assert is_in(client)


def test_mail_that_is_kept_is_a_file(
    client: Client, ada: User, settings: Any, tmp_path: Path
) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = tmp_path
    answer = client.post("/account/password/reset", {"email": "ada@example.org"}, follow=True)
    assert "as a file in the folder <code>mail</code>" in answer.text
    (kept,) = tmp_path.iterdir()
    assert "http://testserver/account/password/reset/" in kept.read_text()


def test_who_asks_for_mail_again_and_again_is_asked_to_wait(client: Client) -> None:
    form = {"email": "eve@example.org"}
    said = [client.post("/account/password/reset", form).status_code for _ in range(6)]
    assert said == [302] * 5 + [429]
    assert len(mail.outbox) == 5
    assert "asked too often" in client.post("/account/password/reset", form).text


def test_a_changed_password_ends_sessions_elsewhere(client: Client) -> None:
    elsewhere = Client()
    for one in (client, elsewhere):
        log_in(one)
    wrong = {"oldpassword": "x", "password1": "another-kernel-8", "password2": "another-kernel-8"}
    assert client.post("/account/password", wrong).status_code == 200
    assert client.post("/account/password", {**wrong, "oldpassword": PASSWORD}).status_code == 302
    assert is_in(client)
    assert not is_in(elsewhere)


def test_sessions_are_listed_and_the_others_ended(client: Client) -> None:
    elsewhere = Client(headers={"user-agent": "Elsewhere/1\u202e"}, REMOTE_ADDR="10.1.2.3")
    for one in (client, elsewhere):
        log_in(one)
    page = client.get("/account/sessions").text
    assert page.count("<tr>") == 3
    for part in ("Elsewhere/1", "10.1.2.3", "this one", "End the others"):
        assert part in page
    client.post("/account/sessions")
    assert is_in(client)
    assert not is_in(elsewhere)
    assert client.get("/account/sessions").text.count("<tr>") == 2


def test_a_single_session_is_ended_by_its_account_only(client: Client) -> None:
    person("bob")
    elsewhere, stranger = Client(), Client()
    log_in(stranger, "bob")
    for one in (client, elsewhere):
        log_in(one)
    (end,) = re.findall(r"/account/sessions/\d+/end", client.get("/account/sessions").text)
    assert stranger.post(end).status_code == 404
    assert client.get(end).status_code == 405
    assert is_in(elsewhere)
    assert client.post(end).status_code == 302
    assert is_in(client)
    assert not is_in(elsewhere)


def test_an_address_that_is_none_lets_log_in(client: Client, settings: Any) -> None:
    settings.NUM_PROXIES = 1
    assert log_in(client, HTTP_X_FORWARDED_FOR="not an address").status_code == 302
    assert "0.0.0.0" in client.get("/account/sessions").text
