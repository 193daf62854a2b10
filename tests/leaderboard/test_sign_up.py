"""Signing up: off until configured, confirmed by mail, under a name that is nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ValidationError
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client

from leaderboard.account_pages import names
from leaderboard.models import Run
from tests.leaderboard.people import PASSWORD, QUICK, is_in, link_in_mail, log_in, person

pytestmark = pytest.mark.server

FORM = {"username": "grace", "email": "grace@example.org", "password1": PASSWORD}


@pytest.fixture
def is_open(db: None, settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK
    settings.SIGN_UP = True


def test_nobody_signs_up_where_that_is_not_configured(db: None, client: Client) -> None:
    for answer in (client.get("/account/sign-up"), client.post("/account/sign-up", FORM)):
        assert "nobody can sign up" in answer.text
    assert "Sign up" not in client.get("/account/login").text
    assert not User.objects.exists()
    assert not mail.outbox


def test_an_account_is_of_use_when_its_address_is_confirmed(is_open: None, client: Client) -> None:
    assert "/account/sign-up" in client.get("/account/login").text
    answer = client.post("/account/sign-up", FORM)
    assert answer["Location"] == "/account/email/sent"
    assert "file in the folder" in client.get("/account/email/sent").text
    assert not is_in(client)
    assert log_in(client, "grace")["Location"] == "/account/email/sent"
    assert not is_in(client)
    link = link_in_mail("grace@example.org")
    assert "grace@example.org" in client.get(link).text
    assert not EmailAddress.objects.get().verified  # a reader of mail may open links
    client.post(link)
    log_in(client, "grace")
    assert "You have confirmed grace@example.org" in client.get("/account").text
    assert "grace@example.org" not in client.get("/account").text
    assert "no longer good" in client.get("/account/email/confirm/other").text


def test_no_page_and_no_answer_of_the_api_shows_an_address(run: Run, client: Client) -> None:
    submission = run.kernel.submission
    User.objects.filter(pk=submission.owner_id).update(email="owner@example.org")
    pages = ("/", f"/runs/{run.id}", f"/submissions/{submission.pk}", "/feed.atom")
    data = (f"/runs/{run.id}.json", "/api/v1/runs", f"/api/v1/submissions/{submission.pk}")
    for address in (*pages, *data):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "owner@example.org" not in answer.text


def test_a_taken_address_looks_as_a_new_one_does(is_open: None, client: Client) -> None:
    client.post("/account/sign-up", FORM)
    again = client.post("/account/sign-up", {**FORM, "username": "eve"})
    assert again["Location"] == "/account/email/sent"
    assert list(User.objects.values_list("username", flat=True)) == ["grace"]


def test_an_address_is_changed_when_the_new_one_is_confirmed(is_open: None, client: Client) -> None:
    client.post("/account/sign-up", FORM)
    client.post(link_in_mail("grace@example.org"))
    log_in(client, "grace")
    asked = {"email": "hopper@example.org", "action_add": ""}
    assert client.post("/account/email", asked)["Location"].startswith("/account/reauthenticate")
    assert "hopper" not in client.get("/account/email").text
    client.post("/account/reauthenticate", {"password": FORM["password1"]})
    client.post("/account/email", asked)
    waiting = client.get("/account/email").text
    assert "<b>grace@example.org</b>" in waiting
    assert "<b>hopper@example.org</b> waits" in waiting
    client.post(link_in_mail("hopper@example.org"))
    assert User.objects.get().email == "hopper@example.org"


def test_a_mail_server_that_is_down_is_said_in_words(
    is_open: None, client: Client, monkeypatch: Any
) -> None:
    def down(*_: object) -> None:
        raise ConnectionRefusedError

    with monkeypatch.context() as broken:
        broken.setattr(EmailBackend, "send_messages", down)
        answer = client.post("/account/sign-up", FORM)
    assert (answer.status_code, answer["Retry-After"]) == (503, "30")
    assert "takes no mail" in answer.text
    log_in(client, "grace")
    assert not is_in(client)


@pytest.mark.parametrize(
    "name",
    [
        *("admin", "ADMIN", "adm1n", "a.d_min", "r00t", "Staff", "pkb", "s"),
        *("gr\u0430ce", "grace\u200b", "\u202egrace", "gr ace", "-grace", "grace.", "a" * 41),
        *("<b>", "grace\n", "ｇｒａｃｅ"),
    ],
)
def test_a_name_that_could_be_mistaken_is_refused(is_open: None, client: Client, name: str) -> None:
    answer = client.post("/account/sign-up", {**FORM, "username": name})
    if name.strip() == FORM["username"]:  # Django's forms take blanks at an end away
        assert User.objects.get().username == name.strip()
        return
    assert 'class="errors"' in answer.text
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["grace", "Grace-Hopper_1906", "x.y", "4ever", "administrative"])
def test_a_plain_name_is_fine(name: str) -> None:
    for validator in names.VALIDATORS:
        validator(name)
    with pytest.raises(ValidationError):
        names.plain(f"{name}é")


def test_a_name_is_taken_in_any_case(is_open: None, client: Client) -> None:
    person("Grace")
    assert "already exists" in client.post("/account/sign-up", FORM).text
