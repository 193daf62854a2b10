"""Logs in: asks for a token, tries it, keeps it."""

from __future__ import annotations

import getpass
import os
import sys
from argparse import Namespace

from . import credentials
from .console import note, say, say_json
from .failures import OK, Misused
from .transport import TOKEN_ENV, SiteAddress


def login(arguments: Namespace) -> int:
    """Keep a site's address and a token of its page /account, if the site takes it."""
    url = credentials.normal(arguments.address)
    if credentials.is_in_clear(url):
        note(f"{url} is not encrypted: whoever is on the way can read the token")
    given = os.environ.get(TOKEN_ENV)
    if given:
        note(f"taking the token of {TOKEN_ENV}")
    token = credentials.checked_token(given or _asked(url), TOKEN_ENV if given else "")
    if token is None:
        raise Misused("No token was given.", f"Make one at {url}/account.")
    site = SiteAddress(url, token)
    found = site.get("/api/v1/status").json()
    path = credentials.keep(site)
    version = found.get("software_version")
    if arguments.json:
        say_json({"site": url, "software_version": version, "token": str(path)})
    else:
        say(f"{url} (version {version}) takes the token, kept in {path}")
    return OK


def _asked(url: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    note(f"Make a token with the scope `submit` at {url}/account.")
    return getpass.getpass("Token (not shown): ")
