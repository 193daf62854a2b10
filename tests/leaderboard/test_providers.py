"""Logging in by another site: a scripted OpenID server, and how the environment names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from leaderboard.account_pages import login_settings
from tests.leaderboard.people import PASSWORD, QUICK, is_in, log_in, person

ISSUER = "https://id.example.org"
APP = {
    **{"provider_id": "openid", "name": "Example University", "client_id": "pkb"},
    **{"secret": "s", "settings": {"server_url": ISSUER}},
}
PERSON = {"sub": "1", "preferred_username": "grace", "email_verified": True}


class Answer:
    status_code = 200
    content = b""
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def json(self) -> dict[str, Any]:
        return self.body

    def raise_for_status(self) -> None:
        return None


class Server:
    """Answers as an OpenID server that is asked about `person`."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {**PERSON, "email": "grace@example.org"}

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def get(self, url: str, **_: object) -> Answer:
        if url == f"{ISSUER}/userinfo":
            return Answer(self.person)
        assert url == f"{ISSUER}/.well-known/openid-configuration"
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token"}
        places |= {"userinfo_endpoint": "userinfo"}
        return Answer({name: f"{ISSUER}/{place}" for name, place in places.items()})

    def request(self, method: str, url: str, **sent: Any) -> Answer:
        assert (method, url, sent["data"]["code"]) == ("POST", f"{ISSUER}/token", "c0de")
        return Answer({"access_token": "t", "token_type": "Bearer"})


@pytest.fixture
def server(db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Server:
    settings.PASSWORD_HASHERS = QUICK
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [APP]}}
    settings.SIGN_UP = True
    made = Server()
    monkeypatch.setattr(DefaultSocialAccountAdapter, "get_requests_session", lambda _: made)
    return made


def come_back(client: Client, process: str = "login") -> Any:
    """Follow a reader to the server and back."""
    led = client.post(f"/account/openid/login?process={process}")
    address = urlsplit(led["Location"])
    assert address.netloc == "id.example.org"
    state = parse_qs(address.query)["state"][0]
    return client.get("/account/openid/callback", {"code": "c0de", "state": state})


def test_who_is_known_elsewhere_gets_an_account(server: Server, client: Client) -> None:
    assert "Log in with Example University" in client.get("/account/login").text
    assert "Go on to Example University" in client.get("/account/openid/login").text
    assert come_back(client)["Location"] == "/account"
    assert is_in(client)
    assert User.objects.get().username == "grace"
    assert not mail.outbox
    assert "Example University" in client.get("/account/providers").text
    again = Client()
    come_back(again)
    assert is_in(again)
    assert User.objects.count() == 1


def test_no_name_shows_an_address_or_is_the_sites_own(server: Server, client: Client) -> None:
    server.person |= {"preferred_username": "admin", "given_name": "", "name": ""}
    come_back(client)
    name = User.objects.get().username
    assert name.startswith("user")
    server.person |= {
        "sub": "2",
        "email": "x@example.org",
        "preferred_username": "gr\u0430ce@x.org",
    }
    come_back(Client())
    assert not [one for one in User.objects.all() if "@" in one.username or one.username == "x"]


def test_an_unconfirmed_address_has_to_be_confirmed(server: Server, client: Client) -> None:
    server.person["email_verified"] = False
    assert come_back(client)["Location"] == "/account/email/sent"
    assert not is_in(client)
    assert mail.outbox[0].to == ["grace@example.org"]


def test_an_address_alone_opens_nobody_elses_account(server: Server, client: Client) -> None:
    person("ada", email="grace@example.org")
    come_back(client)
    assert not is_in(client)
    assert list(User.objects.values_list("username", flat=True)) == ["ada"]


def test_without_sign_up_it_opens_accounts_that_are_there(
    server: Server, client: Client, settings: Any
) -> None:
    settings.SIGN_UP = False
    assert "nobody can sign up" in come_back(client).text
    assert not User.objects.exists()
    person()
    log_in(client)
    assert come_back(client, "connect")["Location"] == "/account/reauthenticate"
    asked = client.post("/account/reauthenticate", {"password": PASSWORD})
    assert asked["Location"] == "/account/providers"
    elsewhere = Client()
    come_back(elsewhere)
    assert is_in(elsewhere)


def down(*_: object) -> None:
    raise requests.ConnectionError


def test_a_server_that_is_down_or_says_no_is_told_in_words(
    server: Server, client: Client, monkeypatch: Any
) -> None:
    assert "did not say who you are" in client.get("/account/openid/callback").text
    monkeypatch.setattr(Server, "request", lambda *_, **__: Answer({"error": "no"}))
    assert "did not say who you are" in come_back(client).text
    monkeypatch.setattr(Server, "get", down)
    assert "cannot be reached" in client.post("/account/openid/login", follow=True).text


def test_other_sites_are_off_until_configured(db: None, client: Client) -> None:
    for name in ("github", "openid", "other"):
        for what in ("login", "callback"):
            assert client.get(f"/account/{name}/{what}").status_code == 404
    assert "Log in with" not in client.get("/account/login").text


GITHUB = {"GITHUB_CLIENT_ID": "a", "GITHUB_CLIENT_SECRET": "b"}
OPENID = {"OPENID_CLIENT_ID": "a", "OPENID_CLIENT_SECRET": "b", "OPENID_PROVIDER_URL": ISSUER}


def test_the_environment_names_other_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    assert login_settings.providers() == ({}, [])
    for name, value in (GITHUB | OPENID).items():
        monkeypatch.setenv(name, value)
    found, origins = login_settings.providers()
    assert list(found) == ["github", "openid_connect"]
    assert origins == ["https://github.com", ISSUER]
    assert found["openid_connect"]["APPS"][0]["name"] == "id.example.org"


@pytest.mark.parametrize(
    "half",
    [
        {"GITHUB_CLIENT_ID": "a"},
        {"GITHUB_CLIENT_SECRET": "a"},
        {**OPENID, "OPENID_PROVIDER_URL": ""},
        {**OPENID, "OPENID_PROVIDER_URL": "id.example.org"},
    ],
)
def test_half_a_configuration_stops_the_site(
    monkeypatch: pytest.MonkeyPatch, half: dict[str, str]
) -> None:
    for name, value in half.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match="Set "):
        login_settings.providers()
