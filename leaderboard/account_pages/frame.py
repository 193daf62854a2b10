"""Gives templates of accounts what they show beside what allauth's views pass. Used by jinja."""

from __future__ import annotations

from collections.abc import Callable

from allauth.socialaccount.adapter import get_adapter
from django.conf import settings
from django.contrib.messages import get_messages
from django.http import HttpRequest


def messages_of(request: HttpRequest) -> list[dict[str, str]]:
    """Return what an earlier page left to say to this reader; each is shown once."""
    return [{"text": str(said), "level": said.level_tag} for said in get_messages(request)]


def providers_of(request: HttpRequest, process: str = "login") -> list[dict[str, str]]:
    """Return who else may say who somebody is, each with where that begins; `process` is `login`
    or `connect`."""
    after = {"next": request.GET["next"]} if request.GET.get("next") else {}
    return [
        {"name": provider.name, "url": provider.get_login_url(request, process=process, **after)}
        for provider in get_adapter().list_providers(request)
    ]


def is_sign_up_open() -> bool:
    return bool(settings.SIGN_UP)


def is_mail_kept() -> bool:
    """Return whether the site keeps its mail in a folder, as it knows no server."""
    return bool(settings.IS_MAIL_KEPT)


WORDS: dict[str, Callable[..., object]] = {
    function.__name__: function
    for function in (messages_of, providers_of, is_sign_up_open, is_mail_kept)
}
