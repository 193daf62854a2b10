"""Tells who asks. Used by the access log, the throttles and logins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings


def client_address(environ: Mapping[str, Any]) -> str:
    """Return an address: of X-Forwarded-For only what NUM_PROXIES declared proxies wrote."""
    told = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    number = settings.NUM_PROXIES
    if number and len(told) >= number:
        return str(told[-number]).strip()
    return str(environ.get("REMOTE_ADDR", ""))
