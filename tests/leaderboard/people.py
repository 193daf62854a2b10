"""What tests of accounts share: a person with a password, and the mail that reaches them."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

PASSWORD = "a-kernel-a-day-9"
QUICK = ["django.contrib.auth.hashers.MD5PasswordHasher"]
_LINK = re.compile(r"http://testserver(/account/\S+)")


def person(name: str = "ada", **more: Any) -> User:
    return User.objects.create_user(name, password=PASSWORD, **more)


def log_in(client: Client, name: str = "ada", password: str = PASSWORD, **more: Any) -> Any:
    return client.post("/account/login", {"login": name, "password": password}, **more)


def is_in(client: Client) -> bool:
    return client.get("/account").status_code == 200


def link_in_mail(to: str) -> str:
    """Return the address that the newest mail leads to."""
    sent = mail.outbox[-1]
    assert sent.to == [to]
    found = _LINK.search(str(sent.body))
    assert found, sent.body
    return found[1]
