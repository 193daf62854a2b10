"""Logs in: asks for a token, tries it, keeps it."""

from __future__ import annotations

import getpass
import os
import sys
from argparse import Namespace

from . import credentials
from .console import note, say, say_json
from .failures import OK, Misused
from .transport import SiteAddress


def login(arguments: Namespace) -> int:
    """Keep a site's address and a token of its page /account, if the site takes it."""
    url = credentials.normal(arguments.address)
    if credentials.is_in_clear(url):
        note(f"{url} is not encrypted: whoever is on the way can read the token")
    token = credentials.checked_token(os.environ.get("PKB_TOKEN") or _asked(url))
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
