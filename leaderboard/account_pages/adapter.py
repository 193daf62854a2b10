"""Tells django-allauth what this site wants of signing up and logging in."""

from __future__ import annotations

import ipaddress
import logging
import smtplib
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse

from leaderboard.delivery.error_answers import error_answer
from leaderboard.kit.client_address import client_address
from leaderboard.kit.request_error import RequestError

log = logging.getLogger(__name__)
NO_ADDRESS = "0.0.0.0"
SHOWN = tuple(
    f"account/messages/{name}.txt"
    for name in ("logged_in", "logged_out", "email_confirmation_sent")
)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Overrides hooks that allauth documents for that."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "That name and password do not fit together.",
        "too_many_login_attempts": "Too many attempts failed for this account or from your address:"
        " wait five minutes.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.SIGN_UP)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address that the throttles of the API and the access log go by."""
        try:
            return str(ipaddress.ip_address(client_address(request.META)))
        except ValueError:  # of a Unix socket, or nonsense
            return NO_ADDRESS

    def generate_unique_username(self, txts: list[str | None], regex: str | None = None) -> str:
        """Make a name from what a provider tells; never from an e-mail address, as names show."""
        told = [text for text in txts if text and "@" not in text]
        return str(super().generate_unique_username(told, regex))

    def get_login_stages(self) -> list[str]:
        """Return allauth's steps, with ours for the confirmed address."""
        theirs = f"{EmailVerificationStage.__module__}.{EmailVerificationStage.__qualname__}"
        ours = f"{ConfirmedAddress.__module__}.{ConfirmedAddress.__qualname__}"
        return [ours if stage == theirs else stage for stage in super().get_login_stages()]

    def add_message(
        self, request: HttpRequest, level: int, template: str = "", *args: Any, **more: Any
    ) -> None:
        """Leave something to say to the next page, unless that shows it anyway."""
        if template not in SHOWN:
            super().add_message(request, level, template, *args, **more)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail; answer the request with 503 in words where the server takes none."""
        try:
            super().send_mail(template_prefix, email, context)
        except (OSError, smtplib.SMTPException) as error:
            log.exception("a mail could not be sent")
            raise ImmediateHttpResponse(_no_mail(self.request)) from error


class ConfirmedAddress(EmailVerificationStage):  # type: ignore[misc]
    """Asks who signed up to confirm an address; nobody is there who signs up with a taken one. An
    account that an operator made has none to confirm."""

    def handle(self) -> tuple[HttpResponse | None, bool]:
        user = self.login.user
        if user is not None and not _has_to_confirm(user):
            return None, True
        return super().handle()  # type: ignore[no-any-return]


def _has_to_confirm(user: AbstractBaseUser) -> bool:
    """Return whether somebody signed up and was never in yet, which takes a confirmed address."""
    own = EmailAddress.objects.filter(user_id=user.pk)
    return user.last_login is None and bool(own.exists())


def _no_mail(request: HttpRequest) -> HttpResponse:
    message = "The site's mail server takes no mail now."
    fix = "Try again in some minutes. A new account is there: log in, and the mail is sent again."
    return error_answer(request, RequestError("no_mail", message, fix, status=503))
