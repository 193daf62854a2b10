"""Keeps staff who have no second factor from all but setting one up, where that is asked, and ends
sessions that began without it."""

from __future__ import annotations

from collections.abc import Callable

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import SimpleLazyObject

# Where nobody can do more than log in, log out, and set it up.
OPEN = (
    *("account_login", "account_logout", "account_reauthenticate"),
    *("account_change_password", "account_set_password"),
    *("account_email", "account_confirm_email"),
    *("mfa_index", "mfa_activate_totp", "mfa_reauthenticate"),
)


class SecondFactorMissing(Exception):
    """Reports that a view asked who somebody is who has yet to set up a second factor."""


class InsistOnSecondFactor:
    """Asks when a view asks who is there: a page that does not, which is for all, costs nothing.

    A staff's account without a second factor is nobody's to these views, not even its owner's.
    """

    def __init__(self, handler: Callable[[HttpRequest], HttpResponse]) -> None:
        self.handler = handler

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.REQUIRE_SECOND_FACTOR_OF_STAFF:
            user = request.user
            request.user = SimpleLazyObject(lambda: _checked(request, user))  # type: ignore[assignment]
        return self.handler(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Lead to the page that sets it up."""
        if not isinstance(error, SecondFactorMissing):
            return None
        messages.warning(request, "Staff need a second factor on this site: set it up first.")
        return redirect("mfa_activate_totp")


def end_other_sessions(
    request: HttpRequest, user: AbstractBaseUser, authenticator: Authenticator, **_: object
) -> None:
    """End the sessions that the password alone had begun, when a second factor is set up."""
    if authenticator.type == Authenticator.Type.TOTP:
        own = UserSession.objects.filter(user_id=user.pk)
        for session in own.exclude(session_key=request.session.session_key):
            session.end()


def _checked(request: HttpRequest, user: object) -> object:
    match = request.resolver_match
    is_open = match is not None and match.url_name in OPEN
    if not is_open and getattr(user, "is_staff", False) and not is_mfa_enabled(user):
        raise SecondFactorMissing
    return user
