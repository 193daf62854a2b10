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
from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter
from django.views.decorators.cache import never_cache
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


def private(route: str, view: View, name: str) -> URLPattern:
    """Return the route of a page that is for one reader, and kept by no cache."""
    return path(route, never_cache(view), name=name)


urlpatterns = [
    private("account", account.account, name="account"),
    private("account/tokens/<int:number>/revoke", account.revoke_token, name="revoke_token"),
    private("account/worker-tokens", worker_tokens.worker_tokens, name="worker-tokens"),
    private(
        "account/worker-tokens/<int:number>/revoke",
        worker_tokens.revoke,
        name="revoke-worker-token",
    ),
    private("account/login", login.login, name="account_login"),
    private("account/logout", login.logout, name="account_logout"),
    private("account/sign-up", login.signup, name="account_signup"),
    private("account/inactive", login.account_inactive, name="account_inactive"),
    private("account/reauthenticate", login.reauthenticate, name="account_reauthenticate"),
    private("account/email", login.email, name="account_email"),
    private(
        "account/email/sent",
        login.email_verification_sent,
        name="account_email_verification_sent",
    ),
    private("account/email/confirm/<str:key>", login.confirm_email, name="account_confirm_email"),
    private("account/password", login.password_change, name="account_change_password"),
    private("account/password/set", login.password_set, name="account_set_password"),
    private("account/password/reset", login.password_reset, name="account_reset_password"),
    private(
        "account/password/reset/sent",
        login.password_reset_done,
        name="account_reset_password_done",
    ),
    private(
        "account/password/reset/<base36:uidb36>-<str:key>",
        login.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    private(
        "account/password/reset/done",
        login.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    private("account/second-factor", second_factor.index, name="mfa_index"),
    private("account/second-factor/code", second_factor.authenticate, name="mfa_authenticate"),
    private(
        "account/second-factor/confirm", second_factor.reauthenticate, name="mfa_reauthenticate"
    ),
    private("account/second-factor/set-up", totp.activate_totp, name="mfa_activate_totp"),
    private("account/second-factor/remove", totp.deactivate_totp, name="mfa_deactivate_totp"),
    private(
        "account/second-factor/recovery-codes",
        recovery_codes.view_recovery_codes,
        name="mfa_view_recovery_codes",
    ),
    private(
        "account/second-factor/recovery-codes/new",
        recovery_codes.generate_recovery_codes,
        name="mfa_generate_recovery_codes",
    ),
    private(
        "account/second-factor/recovery-codes.txt",
        recovery_codes.download_recovery_codes,
        name="mfa_download_recovery_codes",
    ),
    private("account/sessions", usersessions.list_usersessions, name="usersessions_list"),
    private("account/sessions/<int:number>/end", sessions.end_session, name="end_session"),
    private("account/providers", providers.connections, name="socialaccount_connections"),
    private("account/providers/sign-up", providers.signup, name="socialaccount_signup"),
    private(
        "account/providers/cancelled",
        providers.login_cancelled,
        name="socialaccount_login_cancelled",
    ),
    private("account/providers/failed", providers.login_error, name="socialaccount_login_error"),
    private("account/github/login", of_provider(github.oauth2_login), name="github_login"),
    private("account/github/callback", of_provider(github.oauth2_callback), name="github_callback"),
    private(
        "account/<slug:provider_id>/login", of_provider(openid.login), name="openid_connect_login"
    ),
    private(
        "account/<slug:provider_id>/callback",
        of_provider(openid.callback),
        name="openid_connect_callback",
    ),
]
