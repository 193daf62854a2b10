"""Repeats public answers before sessions, routes and views are asked, until the data changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_etags

from leaderboard.models import DataVersion
from leaderboard.pages import PUBLIC

Handler = Callable[[HttpRequest], HttpResponse]
# In each worker. Addresses differ without end, so the oldest makes room.
MOST_BYTES = 6 << 20
HEADERS_BYTES = 2000
OF_BODIES = ("Content-Encoding", "Content-Length", "Content-Type")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An answer as it left, with every header that middlewares gave it."""

    version: str
    body: bytes
    headers: dict[str, str]


# By scheme, host, address and compression.
KEPT: dict[tuple[str, ...], Kept] = {}


def repeat_public(handler: Handler) -> Handler:
    """The outermost middleware."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.method != "GET":
            return handler(request)
        address = _address(request)
        known = KEPT.get(address)
        if known and known.version == str(DataVersion.objects.current()):
            return _repeated(known, request)
        response = handler(request)
        if _is_for_all(response):
            KEPT.pop(address, None)
            KEPT[address] = _kept(response)
            _make_room()
        return response

    return middleware


def _address(request: HttpRequest) -> tuple[str, ...]:
    asked = request.META
    gzip = "gzip" if "gzip" in asked.get("HTTP_ACCEPT_ENCODING", "") else ""
    host = asked.get("HTTP_HOST", "")
    return (request.scheme or "", host, request.path, asked.get("QUERY_STRING", ""), gzip)


def _is_for_all(response: HttpResponse) -> bool:
    """The same for everybody, whatever else they send."""
    said = (response.headers.get("Cache-Control"), response.headers.get("Vary"))
    return response.status_code == 200 and said == (PUBLIC, "Accept-Encoding")


def _kept(response: HttpResponse) -> Kept:
    version = response["ETag"].removeprefix('W/"').partition("-")[0]
    return Kept(version=version, body=response.content, headers=dict(response.items()))


def _repeated(known: Kept, request: HttpRequest) -> HttpResponse:
    wanted = request.META.get("HTTP_IF_NONE_MATCH", "")
    if wanted and known.headers["ETag"] in parse_etags(wanted):
        headers = {name: text for name, text in known.headers.items() if name not in OF_BODIES}
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(known.body, headers=known.headers)


def _make_room() -> None:
    spare = MOST_BYTES - sum(_weight(*pair) for pair in KEPT.items())
    while spare < 0:
        oldest = next(iter(KEPT))
        spare += _weight(oldest, KEPT.pop(oldest))


def _weight(address: tuple[str, ...], one: Kept) -> int:
    """Roughly, in bytes."""
    return len(one.body) + sum(map(len, address)) + HEADERS_BYTES
