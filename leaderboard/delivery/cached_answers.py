"""Repeat public answers before Django makes a request of them, until the data changes.

The one cache of finished answers. Each worker has its own, which its threads share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.db import DatabaseError, InterfaceError
from django.utils.http import parse_etags

from leaderboard.delivery.pages import ASKED, PUBLIC
from leaderboard.models import DataVersion
from leaderboard.models.catalogue import OutdatedSummaryError

Headers = list[tuple[str, str]]
Address = tuple[str, ...]
# In each worker. Addresses differ without end, so the oldest makes room.
MOST_BYTES = 6 << 20
HEADERS_BYTES = 2000
OF_BODIES = ("Content-Encoding", "Content-Length", "Content-Type")
# What of a request a public answer depends on, besides whether it may be compressed.
OF_ADDRESSES = (
    *("wsgi.url_scheme", "HTTP_X_FORWARDED_PROTO", "HTTP_HOST"),
    *("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING"),
)
OF_PEOPLE = ("HTTP_COOKIE", "HTTP_AUTHORIZATION")


@dataclass(frozen=True, kw_only=True)
class CachedAnswer:
    """Holds an answer as it left, with every header that middlewares gave it."""

    version: str
    etag: str
    body: bytes
    headers: Headers


class AnswerCache:
    """Holds answers by address, at most MOST_BYTES of them. Threads may use it at once: reading is
    one look into a dict, and only one thread changes it at a time."""

    def __init__(self) -> None:
        self._changing = Lock()
        self._known: dict[Address, CachedAnswer] = {}
        self._bytes = 0
        self.get: Callable[[Address], CachedAnswer | None] = self._known.get

    def put(self, address: Address, answer: CachedAnswer) -> None:
        """Store an answer as the newest; the oldest ones make room for it."""
        with self._changing:
            self._drop(address)
            self._known[address] = answer
            self._bytes += _weight(address, answer)
            while self._bytes > MOST_BYTES:
                self._drop(next(iter(self._known)))

    def clear(self) -> None:
        with self._changing:
            self._known.clear()
            self._bytes = 0

    def _drop(self, address: Address) -> None:
        if known := self._known.pop(address, None):
            self._bytes -= _weight(address, known)


def _weight(address: Address, answer: CachedAnswer) -> int:
    """Return roughly how many bytes an answer takes."""
    return len(answer.body) + sum(map(len, address)) + HEADERS_BYTES


CACHED = AnswerCache()
# What nobody has signed in for is made by one thread, while others who want it wait; so many
# different addresses at once.
MAKING = [Lock() for _ in range(64)]


def repeat_public(application: WSGIApplication) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return application(environ, start_response)
        address = _address(environ)
        before = CACHED.get(address)
        if known := _current(before, environ):
            return _repeated(known, environ, start_response)
        if environ["REQUEST_METHOD"] == "HEAD":
            return _without_body(application(environ, start_response))
        if any(environ.get(name) for name in OF_PEOPLE):
            return _noted(application, address, environ, start_response)
        with MAKING[hash(address) % len(MAKING)]:
            made = CACHED.get(address)
            if made is not before and (known := _current(made, environ)):
                return _repeated(known, environ, start_response)
            return _noted(application, address, environ, start_response)

    return answer


def _current(cached: CachedAnswer | None, environ: WSGIEnvironment) -> CachedAnswer | None:
    """Return this answer if the data is still of its version."""
    if cached is None:
        return None
    try:
        version = environ[ASKED] = DataVersion.objects.current()
    except (DatabaseError, InterfaceError, OutdatedSummaryError):
        return None  # Django meets the same, and says so
    return cached if cached.version == str(version) else None


def _without_body(response: Any) -> list[bytes]:
    if hasattr(response, "close"):
        response.close()
    return []


def _address(environ: WSGIEnvironment) -> Address:
    gzip = "gzip" if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "") else ""
    return (*(environ.get(name, "") for name in OF_ADDRESSES), gzip)


def _noted(
    application: WSGIApplication,
    address: Address,
    environ: WSGIEnvironment,
    start_response: StartResponse,
) -> Any:
    """Return the application's own answer, cached if it is for all."""
    told: list[tuple[str, Headers]] = []

    def start(status: str, headers: Headers, *error: Any) -> Any:
        told.append((status, headers))
        return start_response(status, headers, *error)

    response: Any = application(environ, start)
    status, headers = told[-1]
    if not _is_for_all(status, dict(headers)):
        return response
    try:
        body = b"".join(response)
    finally:
        response.close()
    CACHED.put(address, _cached(body, headers))
    return [body]


def _is_for_all(status: str, headers: dict[str, str]) -> bool:
    """Return whether an answer is the same for everybody, whatever else they send."""
    said = (headers.get("Cache-Control"), headers.get("Vary"))
    return status.startswith("200 ") and said == (PUBLIC, "Accept-Encoding")


def _cached(body: bytes, headers: Headers) -> CachedAnswer:
    etag = dict(headers)["ETag"]
    version = etag.removeprefix('W/"').partition("-")[0]
    return CachedAnswer(version=version, etag=etag, body=body, headers=headers)


def _repeated(
    known: CachedAnswer, environ: WSGIEnvironment, start_response: StartResponse
) -> list[bytes]:
    wanted = environ.get("HTTP_IF_NONE_MATCH", "")
    if wanted and known.etag in parse_etags(wanted):
        headers = [(name, text) for name, text in known.headers if name not in OF_BODIES]
        start_response("304 Not Modified", headers)
        return []
    start_response("200 OK", list(known.headers))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [known.body]
