"""Lists the addresses below /account. Views of allauth keep their names, by which it finds them."""

from __future__ import annotations

import logging

from allauth.account import views as login
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.socialaccount import views as providers
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.github import views as github
from allauth.socialaccount.providers.openid_connect import views as openid
from allauth.usersessions import views as usersessions
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import path, register_converter
from django.urls.converters import StringConverter
from requests import RequestException

from leaderboard.account_pages import account, sessions, worker_tokens
from leaderboard.delivery.pages import View

log = logging.getLogger(__name__)


class Base36(StringConverter):
    """Reads the number of an account in a link; the key behind it has hyphens too."""

    regex = "[0-9A-Za-z]+"


register_converter(Base36, "base36")


def of_provider(view: View) -> View:
    """Return a provider's view, which raises Http404 on a site that was told of no such one, and
    leads to words about one that does not answer."""

    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except SocialApp.DoesNotExist:
            raise Http404 from None
        except RequestException:
            log.exception("a site that people log in by does not answer")
            return redirect("socialaccount_login_error")

    return answer


urlpatterns = [
    path("account", account.account, name="account"),
    path("account/tokens/<int:number>/revoke", account.revoke_token, name="revoke_token"),
    path("account/worker-tokens", worker_tokens.worker_tokens, name="worker-tokens"),
    path(
        "account/worker-tokens/<int:number>/revoke",
        worker_tokens.revoke,
        name="revoke-worker-token",
    ),
    path("account/login", login.login, name="account_login"),
    path("account/logout", login.logout, name="account_logout"),
    path("account/sign-up", login.signup, name="account_signup"),
    path("account/inactive", login.account_inactive, name="account_inactive"),
    path("account/reauthenticate", login.reauthenticate, name="account_reauthenticate"),
    path("account/email", login.email, name="account_email"),
    path(
        "account/email/sent",
        login.email_verification_sent,
        name="account_email_verification_sent",
    ),
    path("account/email/confirm/<str:key>", login.confirm_email, name="account_confirm_email"),
    path("account/password", login.password_change, name="account_change_password"),
    path("account/password/set", login.password_set, name="account_set_password"),
    path("account/password/reset", login.password_reset, name="account_reset_password"),
    path(
        "account/password/reset/sent",
        login.password_reset_done,
        name="account_reset_password_done",
    ),
    path(
        "account/password/reset/<base36:uidb36>-<str:key>",
        login.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "account/password/reset/done",
        login.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("account/second-factor", second_factor.index, name="mfa_index"),
    path("account/second-factor/code", second_factor.authenticate, name="mfa_authenticate"),
    path("account/second-factor/confirm", second_factor.reauthenticate, name="mfa_reauthenticate"),
    path("account/second-factor/set-up", totp.activate_totp, name="mfa_activate_totp"),
    path("account/second-factor/remove", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path(
        "account/second-factor/recovery-codes",
        recovery_codes.view_recovery_codes,
        name="mfa_view_recovery_codes",
    ),
    path(
        "account/second-factor/recovery-codes/new",
        recovery_codes.generate_recovery_codes,
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/second-factor/recovery-codes.txt",
        recovery_codes.download_recovery_codes,
        name="mfa_download_recovery_codes",
    ),
    path("account/sessions", usersessions.list_usersessions, name="usersessions_list"),
    path("account/sessions/<int:number>/end", sessions.end_session, name="end_session"),
    path("account/providers", providers.connections, name="socialaccount_connections"),
    path("account/providers/sign-up", providers.signup, name="socialaccount_signup"),
    path(
        "account/providers/cancelled",
        providers.login_cancelled,
        name="socialaccount_login_cancelled",
    ),
    path("account/providers/failed", providers.login_error, name="socialaccount_login_error"),
    path("account/github/login", of_provider(github.oauth2_login), name="github_login"),
    path("account/github/callback", of_provider(github.oauth2_callback), name="github_callback"),
    path(
        "account/<slug:provider_id>/login", of_provider(openid.login), name="openid_connect_login"
    ),
    path(
        "account/<slug:provider_id>/callback",
        of_provider(openid.callback),
        name="openid_connect_callback",
    ),
]
