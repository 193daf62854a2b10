"""Keeps the site's address and the token, which is sent to that site alone and never printed."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from .failures import Misused
from .transport import TOKEN_ENV, SiteAddress

LOCAL = ("localhost", "127.0.0.1", "::1")


def folder() -> Path:
    """Return the folder of `site` and `token`: ~/.config/pkb."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pkb"


def site_called(address: str | None) -> SiteAddress:
    """Return the site of that address, of `PKB_SITE`, or that of the last login, with its token.

    Raises Misused where none is named.
    """
    stored, token = _stored("site"), _stored("token")
    url = normal(address or os.environ.get("PKB_SITE") or stored or "")
    own = token if url == stored else None
    given = os.environ.get(TOKEN_ENV)
    source = TOKEN_ENV if given else str(folder() / "token")
    usable = checked_token(given or own, source)
    return SiteAddress(url, usable, source if usable else None)


def checked_token(text: str | None, source: str = "") -> str | None:
    """Return a token that can be sent, None where there is none. Raises Misused, which names its
    source."""
    token = (text or "").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        said = f"What {source} holds is no token." if source else "That is no token."
        raise Misused(said, "Copy one from /account of the site.")
    return token or None


def normal(address: str) -> str:
    """Return an address of a site as `https://name`. Raises Misused where it is none."""
    if not address:
        raise Misused("No site is named.", "pkb login https://…, or --site, or PKB_SITE.")
    url = (address if "://" in address else f"https://{address}").rstrip("/")
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_usable = False
    if not is_usable or parts.query or parts.fragment or parts.username is not None:
        raise Misused(f"{address} is no address of a site.", "As in https://leaderboard.example.")
    return url


def is_in_clear(url: str) -> bool:
    """Return whether a token would travel unencrypted to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in LOCAL


def keep(site: SiteAddress) -> Path:
    """Write address and token where only their owner can read them; return the token's path."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    # In this order no token ever lies beside another site's address.
    (place / "token").unlink(missing_ok=True)
    (place / "site").write_text(f"{site.url}\n")
    descriptor = os.open(place / "token", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{site.token}\n")
    return place / "token"


def _stored(name: str) -> str | None:
    try:
        return (folder() / name).read_text().strip() or None
    except OSError:
        return None
