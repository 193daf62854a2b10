"""Reads settings from the environment, each with a clear complaint. Used by settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from leaderboard.kit.json_types import JsonDict

# As long as `manage.py check --deploy` asks for.
KEY_LENGTH, KEY_CHARACTERS = 50, 5
SITE_ENV = "/etc/pkb/site.env"
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
SQLITE_TIMEOUT_S = 20
SQLITE_OPTIONS = {
    "timeout": SQLITE_TIMEOUT_S,
    "transaction_mode": "IMMEDIATE",
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536; "
        "PRAGMA mmap_size=1073741824;"
    ),
}

# PostgreSQL reads and plans a statement once in a connection that asks it again and again.
# A server that is gone is an answer, 503, after so many seconds.
POSTGRESQL_OPTIONS = {"server_side_binding": True, "prepare_threshold": 2, "connect_timeout": 5}


def text(name: str, default: str | None = None) -> str:
    """Return `NAME`, or the contents of the file `NAME_FILE`. Raises ImproperlyConfigured."""
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {error}") from None
    value = os.environ.get(name) or default
    if value is None:
        raise ImproperlyConfigured(f"Set {name} (or {name}_FILE): see docs/settings.md.")
    return value


def flag(name: str, default: bool) -> bool:
    value = text(name, "1" if default else "0").lower()
    if value not in TRUE + FALSE:
        raise ImproperlyConfigured(f"{name}={value} is neither of: {', '.join(TRUE + FALSE)}")
    return value in TRUE


def number(name: str, default: int) -> int:
    value = text(name, str(default))
    try:
        return int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value} is not a whole number") from None


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def check_site(root: Path) -> None:
    """Raise ImproperlyConfigured where the embedded defaults would be used beside a site that this
    host has: a command would act on an empty one."""
    site = os.environ.get("PKB_SITE_ENV", SITE_ENV)
    is_set = {"DATABASE_URL", "DATABASE_URL_FILE", "PKB_STATE_DIR"} & set(os.environ)
    if not is_set and os.path.exists(site):
        raise ImproperlyConfigured(
            f"This host has a site, whose settings are in {site}: run {root}/docker/pkb-manage. "
            "For another site set PKB_STATE_DIR."
        )


def described_site() -> str:
    """Return the database, without its password, and the folder that a command acts on."""
    from django.conf import settings  # reads this module

    own = settings.DATABASES["default"]
    where = f" on {own['HOST']}" if own.get("HOST") else ""
    return f"site: database {own['NAME']}{where}, state in {settings.STATE_DIR}"


def check_public(secret_key: str, hosts: Sequence[str]) -> None:
    """Raise ImproperlyConfigured for what a site with DEBUG=0 must not have: a key that can be
    guessed, any name for its own."""
    if len(secret_key) < KEY_LENGTH or len(set(secret_key)) < KEY_CHARACTERS:
        raise ImproperlyConfigured(
            f"SECRET_KEY has less than {KEY_LENGTH} characters, or few different ones: make one "
            'with python3 -c "import secrets; print(secrets.token_hex(32))".'
        )
    if "*" in hosts:
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS=* lets a request name any site as this one: list the names it has."
        )


def database(url: str) -> JsonDict:
    """Return Django's description of `sqlite:///path` or
    `postgresql://user:password@host:port/name`; raise ImproperlyConfigured for another address.

    Query parameters of a PostgreSQL address become connection options (`?sslmode=require`).
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        path = unquote(parts.path.removeprefix("/"))
        if not path or parts.netloc:
            raise ImproperlyConfigured(
                "DATABASE_URL: say sqlite:///relative or sqlite:////absolute"
            )
        engine = "django.db.backends.sqlite3"
        options = {"CONN_MAX_AGE": 600}  # opening one takes as long as answering from the cache
        return {"ENGINE": engine, "NAME": path, "OPTIONS": SQLITE_OPTIONS, **options}
    if parts.scheme not in ("postgresql", "postgres"):
        raise ImproperlyConfigured(
            f"DATABASE_URL starts with {parts.scheme!r}: use postgresql://user@host/name or "
            "sqlite:///path"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": POSTGRESQL_OPTIONS | dict(parse_qsl(parts.query)),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
    }
