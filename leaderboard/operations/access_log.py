"""Gives each request a name, writes a line about its answer, and counts that."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings

from leaderboard.kit.client_address import client_address
from leaderboard.kit.request_names import CURRENT
from leaderboard.operations.metrics import REQUESTS, SECONDS

log = logging.getLogger("leaderboard.access")
# What a proxy in front may name a request.
_NAME = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)
# Whoever has the rest of these addresses is let in by it.
_SECRET = re.compile(r"^(/account/(?:feed|email/confirm|password/reset)/).+")
PROBES = ("/healthz", "/readyz", "/metrics")


def observed(application: WSGIApplication) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began, told = time.perf_counter(), ["500", "-"]
        name = request_id(environ)
        token = CURRENT.set(name)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            told[:] = status[:3], next((v for k, v in headers if k == "Content-Length"), "-")
            return start_response(status, [*headers, ("X-Request-ID", name)], *error)

        try:
            return application(environ, start)
        finally:
            _note(environ, name, told, time.perf_counter() - began)
            CURRENT.reset(token)

    return answer


def request_id(environ: WSGIEnvironment) -> str:
    """Return the name that a declared proxy gave the request, or a new one."""
    given = environ.get("HTTP_X_REQUEST_ID", "") if settings.NUM_PROXIES else ""
    return given if _NAME.fullmatch(given) else uuid.uuid4().hex


def _note(environ: WSGIEnvironment, name: str, told: list[str], took_s: float) -> None:
    REQUESTS.labels(told[0]).inc()
    SECONDS.observe(took_s)
    if environ["PATH_INFO"] in PROBES or not log.isEnabledFor(logging.INFO):
        return
    path = _SECRET.sub(r"\1…", environ["PATH_INFO"])
    # What another site adds to the address that it leads back to lets somebody in, too.
    query = "" if path.startswith("/account/") else environ.get("QUERY_STRING", "")
    said = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "request_id": name,
        "from": client_address(environ),
        "method": environ["REQUEST_METHOD"],
        "path": path,
        "query": query[:500],
        "status": int(told[0]),
        "bytes": None if told[1] == "-" else int(told[1]),
        "ms": round(took_s * 1000, 1),
    }
    log.info(json.dumps(said))
