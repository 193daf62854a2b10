"""Repeats public answers before Django makes a request of them, until the data changes."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.utils.http import parse_etags

from leaderboard.delivery.pages import ASKED, PUBLIC
from leaderboard.models import DataVersion

Headers = list[tuple[str, str]]
# In each worker. Addresses differ without end, so the oldest makes room.
MOST_BYTES = 6 << 20
HEADERS_BYTES = 2000
OF_BODIES = ("Content-Encoding", "Content-Length", "Content-Type")
# What of a request a public answer depends on, besides whether it may be compressed.
OF_ADDRESSES = (
    *("wsgi.url_scheme", "HTTP_X_FORWARDED_PROTO", "HTTP_HOST"),
    *("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING"),
)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An answer as it left, with every header that middlewares gave it."""

    version: str
    etag: str
    body: bytes
    headers: Headers


OF_PEOPLE = ("HTTP_COOKIE", "HTTP_AUTHORIZATION")
KEPT: dict[tuple[str, ...], Kept] = {}
# What nobody has signed in for is made by one thread, while others who want it wait; so many
# different addresses at once.
MAKING = [Lock() for _ in range(64)]


def repeat_public(application: WSGIApplication) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return application(environ, start_response)
        address = _address(environ)
        before = KEPT.get(address)
        if known := _current(before, environ):
            return _repeated(known, environ, start_response)
        if environ["REQUEST_METHOD"] == "HEAD":
            return _without_body(application(environ, start_response))
        if any(environ.get(name) for name in OF_PEOPLE):
            return _noted(application, address, environ, start_response)
        with MAKING[hash(address) % len(MAKING)]:
            made = KEPT.get(address)
            if made is not before and (known := _current(made, environ)):
                return _repeated(known, environ, start_response)
            return _noted(application, address, environ, start_response)

    return answer


def _current(kept: Kept | None, environ: WSGIEnvironment) -> Kept | None:
    """This answer, if the data is still of its version."""
    if kept is None:
        return None
    version = environ[ASKED] = DataVersion.objects.current()
    return kept if kept.version == str(version) else None


def _without_body(response: Any) -> list[bytes]:
    if hasattr(response, "close"):
        response.close()
    return []


def _address(environ: WSGIEnvironment) -> tuple[str, ...]:
    gzip = "gzip" if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "") else ""
    return (*(environ.get(name, "") for name in OF_ADDRESSES), gzip)


def _noted(
    application: WSGIApplication,
    address: tuple[str, ...],
    environ: WSGIEnvironment,
    start_response: StartResponse,
) -> Any:
    """The application's own answer, kept if it is for all."""
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
    KEPT.pop(address, None)
    KEPT[address] = _kept(body, headers)
    _make_room()
    return [body]


def _is_for_all(status: str, headers: dict[str, str]) -> bool:
    """The same for everybody, whatever else they send."""
    said = (headers.get("Cache-Control"), headers.get("Vary"))
    return status.startswith("200 ") and said == (PUBLIC, "Accept-Encoding")


def _kept(body: bytes, headers: Headers) -> Kept:
    etag = dict(headers)["ETag"]
    version = etag.removeprefix('W/"').partition("-")[0]
    return Kept(version=version, etag=etag, body=body, headers=headers)


def _repeated(known: Kept, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    wanted = environ.get("HTTP_IF_NONE_MATCH", "")
    if wanted and known.etag in parse_etags(wanted):
        headers = [(name, text) for name, text in known.headers if name not in OF_BODIES]
        start_response("304 Not Modified", headers)
        return []
    start_response("200 OK", list(known.headers))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [known.body]


def _make_room() -> None:
    spare = MOST_BYTES - sum(_weight(*pair) for pair in KEPT.items())
    while spare < 0:
        oldest = next(iter(KEPT))
        spare += _weight(oldest, KEPT.pop(oldest))


def _weight(address: tuple[str, ...], one: Kept) -> int:
    """Roughly, in bytes."""
    return len(one.body) + sum(map(len, address)) + HEADERS_BYTES
