"""Reads how people log in and how mail leaves the site. Part of settings.

Names that begin with ACCOUNT_, SOCIALACCOUNT_ and MFA_ are django-allauth's.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from leaderboard.kit import environment as env
from leaderboard.kit.json_types import JsonDict

SIGN_UP = env.flag("SIGN_UP", default=False)
REQUIRE_SECOND_FACTOR_OF_STAFF = env.flag("REQUIRE_SECOND_FACTOR_OF_STAFF", default=False)

LOGIN_APPS = [
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
]
# Counts attempts by account, and asks for the second factor. Django's own would do neither.
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "account"
LOGOUT_REDIRECT_URL = "board"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

ACCOUNT_ADAPTER = "leaderboard.account_pages.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*"]
ACCOUNT_USERNAME_MIN_LENGTH = 2
ACCOUNT_USERNAME_VALIDATORS = "leaderboard.account_pages.names.VALIDATORS"
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "PKB Leaderboard: "
ACCOUNT_CHANGE_EMAIL = True
# Whoever finds a browser logged in cannot make the account their own.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_PREVENT_ENUMERATION = True
# Who has the mail is let in, however often others guess at the password.
ACCOUNT_LOGIN_ON_PASSWORD_RESET = True
# Attempts that fail: by address a minute, and by account in five minutes, from wherever they come.
ACCOUNT_RATE_LIMITS = {
    "login_failed": "10/m/ip,5/5m/key",
    "signup": "20/h/ip",
    "reset_password": "20/h/ip,5/h/key",
}
MFA_TOTP_ISSUER = "PKB Leaderboard"
# Clocks differ: the code before and the code after are good too.
MFA_TOTP_TOLERANCE = 1


def _app(provider: str, client_id: str, secret: str) -> dict[str, str]:
    """Return what a provider knows this site by, nothing where that is not configured; raise
    ImproperlyConfigured for half of it."""
    if bool(client_id) != bool(secret):
        raise ImproperlyConfigured(f"Set {provider}_CLIENT_ID and {provider}_CLIENT_SECRET.")
    return {"client_id": client_id, "secret": secret} if client_id else {}


def _origin(url: str) -> str:
    """Return the start of a provider's address; raise ImproperlyConfigured for another text."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ImproperlyConfigured("Set OPENID_PROVIDER_URL to the issuer: https://id.example.org")
    return f"{parts.scheme}://{parts.netloc}"


def providers() -> tuple[dict[str, JsonDict], list[str]]:
    """Return what allauth is told of those that are configured, and the origins they lie at."""
    known: dict[str, JsonDict] = {}
    origins = []
    if github := _app(
        "GITHUB", env.text("GITHUB_CLIENT_ID", ""), env.text("GITHUB_CLIENT_SECRET", "")
    ):
        known["github"] = {"APPS": [github], "SCOPE": ["user:email"]}
        origins.append("https://github.com")
    if app := _app(
        "OPENID", env.text("OPENID_CLIENT_ID", ""), env.text("OPENID_CLIENT_SECRET", "")
    ):
        url = env.text("OPENID_PROVIDER_URL").rstrip("/")
        name = env.text("OPENID_NAME", "") or urlsplit(url).hostname
        more = {"provider_id": "openid", "name": name, "settings": {"server_url": url}}
        known["openid_connect"] = {"APPS": [app | more], "OAUTH_PKCE_ENABLED": True}
        origins.append(_origin(url))
    return known, origins


SOCIALACCOUNT_PROVIDERS, PROVIDER_ORIGINS = providers()

ADMINS = [(address, address) for address in env.words("ADMINS")]
SERVER_EMAIL = DEFAULT_FROM_EMAIL = env.text("SERVER_EMAIL", "root@localhost")
EMAIL_HOST = env.text("EMAIL_HOST", "localhost")
EMAIL_PORT = env.number("EMAIL_PORT", 25)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=False)
EMAIL_TIMEOUT = 10

# Without a server mail is kept in a folder, unless somebody expects faults by mail.
IS_MAIL_KEPT = not (env.text("EMAIL_HOST", "") or ADMINS)
EMAIL_BACKEND = f"django.core.mail.backends.{'filebased' if IS_MAIL_KEPT else 'smtp'}.EmailBackend"
