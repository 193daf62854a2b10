"""Makes answers of public pages: one address as HTML, JSON and CSV, named by the data version.

A view says what a page holds; here it becomes bytes, or 304. cached_answers.py repeats them until
the data changes. Nothing here touches the session or the user unless a page belongs to somebody.
"""

from __future__ import annotations

import csv
import functools
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlencode

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.http import parse_etags
from django.views.decorators.http import require_safe

from leaderboard.delivery.cards import Card
from leaderboard.delivery.readers import may_see
from leaderboard.kit.json_types import JsonObject
from leaderboard.kit.links import one_prefix, with_query
from leaderboard.models import DataVersion, Submission

# Asked again each time, which costs a 304: a verdict must be seen as soon as it is there.
PUBLIC = "public, max-age=0, must-revalidate"
TYPES = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "atom": "application/atom+xml; charset=utf-8",
    "sitemap": "application/xml; charset=utf-8",
    "text": "text/plain; charset=utf-8",
}
FRONT_PAGE_TWIN = "/leaderboard"
# The hardware that a form was made for: of no page's address, so that it never stays in one.
DRAWN = "drawn"
# Where a request holds the data version that was read for it before Django saw it.
ASKED = "leaderboard.data_version"


class BadQuery(Exception):
    """Reports a query parameter that cannot be read; the answer says which values can."""

    def __init__(self, name: str, value: str, allowed: Sequence[str]) -> None:
        super().__init__(name)
        self.message = f"{name}={value[:80]} is not a value this page knows."
        self.fix = f"Leave {name} out, or use one of: {', '.join(allowed) or 'none yet'}."


class Redirect(Exception):
    """Redirects to the same page with these parameters too, or to the page at `path` with these
    alone."""

    def __init__(self, query: str, path: str = "") -> None:
        super().__init__()
        self.query, self.path = query, path


@dataclass(frozen=True, kw_only=True)
class Table:
    """Holds the CSV of a page."""

    columns: tuple[str, ...]
    rows: Iterable[Sequence[object]]

    @classmethod
    def of(cls, columns: tuple[str, ...], records: Iterable[JsonObject]) -> Self:
        """Return the records' values in the columns, each made when its row is asked for."""
        rows = ([record[name] for name in columns] for record in records)
        return cls(columns=columns, rows=rows)


@dataclass(frozen=True, kw_only=True)
class Crumb:
    text: str
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Page:
    """Describes a page. What is `private` belongs to a submission, `of`, and is shown to who may
    see that.

    `context` and `data` may be functions that make them: what costs much is then made for its own
    form only. Search engines are asked to leave out what is `unlisted`. What `varies` with who
    reads it is kept by no cache. A page with a `card` has a picture for links at `.png`.
    """

    template: str
    section: str
    context: Mapping[str, object] | Callable[[], Mapping[str, object]]
    data: object
    crumbs: tuple[Crumb, ...] = ()
    table: Table | None = None
    card: Callable[[], Card] | None = None
    private: bool = False
    unlisted: bool = False
    varies: bool = False
    of: Submission | None = None


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Holds a finished body, compressed; `etag` names what it was made from."""

    body: bytes
    content_type: str
    etag: str


Build = Callable[..., Page]
View = Callable[..., HttpResponseBase]


def public_page(*parameters: str, live: bool = False) -> Callable[[Build], View]:
    """Serve a page that reads only these query parameters; a live one is never cached."""

    def decorate(build: Build) -> View:
        @require_safe
        @functools.wraps(build)
        def view(request: HttpRequest, form: str = "html", **parts: object) -> HttpResponseBase:
            query = canonical_query(request, (*parameters, DRAWN))
            make = functools.partial(_make, build, request, form, query, parts)
            try:
                if live:
                    return answer(request, make(etag=None), cached="no-cache")
                return answer_public(request, f"{form} {request.path}?{query}", make)
            except BadQuery as error:
                return bad_query(error, form)
            except Redirect as other:
                if other.path:
                    twin = "" if form == "html" else f".{form}"
                    return redirect(with_query(f"{other.path}{twin}", other.query))
                return redirect_to(other, request, parameters)

        return view

    return decorate


def redirect_to(other: Redirect, request: HttpRequest, kept: Sequence[str]) -> HttpResponse:
    """Redirect to the same page, which keeps these parameters of its address."""
    asked = f"{canonical_query(request, kept)}&{other.query}"
    return redirect(f"{request.path}?{urlencode(dict(parse_qsl(asked)))}")


def answer_public(
    request: HttpRequest, address: str, make: Callable[..., Stored | HttpResponse]
) -> HttpResponse:
    """Return what is made for this address, named by it and by the data version, or 304 to who has
    that. A response is passed on as it is: it belongs to somebody."""
    digest = hashlib.sha256(f"{origin(request)} {address}".encode()).hexdigest()[:24]
    version = DataVersion.objects.current(asked=request.META.get(ASKED))
    etag = f'W/"{version}-{code_version()}-{digest}"'
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        stored: Stored | HttpResponse = Stored(body=b"", content_type="", etag=etag)
    else:
        stored = make(etag=etag)
    return answer(request, stored, cached=PUBLIC)


def answer(request: HttpRequest, stored: Stored | HttpResponse, *, cached: str) -> HttpResponse:
    if isinstance(stored, HttpResponse):
        return stored
    if stored.etag in parse_etags(request.headers.get("If-None-Match", "")):
        response = HttpResponse(status=304)
    elif "gzip" in request.headers.get("Accept-Encoding", ""):
        response = HttpResponse(stored.body, content_type=stored.content_type)
        response["Content-Encoding"] = "gzip"
    else:
        response = HttpResponse(gzip.decompress(stored.body), content_type=stored.content_type)
    response["ETag"] = stored.etag
    response["Vary"] = "Accept-Encoding"
    response["Cache-Control"] = cached
    return response


def packed(body: str | bytes, form: str, etag: str | None) -> Stored:
    """Compress a body; without an etag of its own it is named by its content."""
    raw = body.encode() if isinstance(body, str) else body
    name = etag or f'W/"{hashlib.sha256(raw).hexdigest()[:32]}"'
    compressed = gzip.compress(raw, compresslevel=3, mtime=0)
    return Stored(body=compressed, content_type=TYPES[form], etag=name)


def _make(
    build: Build,
    request: HttpRequest,
    form: str,
    query: str,
    parts: Mapping[str, object],
    *,
    etag: str | None,
) -> Stored | HttpResponse:
    with one_prefix():
        page = build(request, **parts)
        body = rendered(page, form, request.path, query, origin(request))
    if not (page.private or page.varies):
        return packed(body, form, etag)
    if page.private and not may_see(request, page.of):
        raise Http404
    response = HttpResponse(body, content_type=TYPES[form])
    response["Cache-Control"] = "private, no-store"
    return response


def rendered(page: Page, form: str, path: str, query: str, site: str) -> str | bytes:
    if form == "json":
        data = page.data() if callable(page.data) else page.data
        return json.dumps(data, cls=DjangoJSONEncoder, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        if page.table is None:
            raise Http404
        return as_csv(page.table)
    if form == "png":
        return drawn(page)
    shown = {**frame(page, path, query), "origin": "" if page.private else site}
    return render_to_string(page.template, shown)


def drawn(page: Page) -> bytes:
    """Return the card of a page, which has one if its form `png` has an address."""
    from leaderboard.delivery import card_drawing

    if page.card is None or page.private:
        raise Http404
    return card_drawing.png(page.card())


def frame(page: Page, path: str, query: str) -> dict[str, object]:
    """Return a page's context with what the frame around it needs."""
    stem = FRONT_PAGE_TWIN if path == "/" else path
    tail = f"?{query}" if query else ""
    forms = ["json", "csv"] if page.table else ["json"]
    twins = [{"name": f.upper(), "type": TYPES[f], "url": f"{stem}.{f}{tail}"} for f in forms]
    return {
        "section": page.section,
        "crumbs": page.crumbs,
        "unlisted": page.unlisted,
        "twins": twins,
        "address": f"{path}{tail}",
        "card_address": f"{stem}.png{tail}" if page.card else "",
        **(page.context() if callable(page.context) else page.context),
    }


def origin(request: HttpRequest) -> str:
    """Return the site's address, `https://name`; empty where a request may claim any host."""
    if settings.PKB_PUBLIC_URL:
        return str(settings.PKB_PUBLIC_URL)
    if "*" in settings.ALLOWED_HOSTS:
        return ""
    return f"{request.scheme}://{request.get_host()}"


def as_csv(table: Table) -> str:
    """Return the CSV; text that a spreadsheet would run as a formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_inert(value) for value in row] for row in table.rows)
    return out.getvalue()


def _inert(value: object) -> object:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value


def canonical_query(request: HttpRequest, parameters: Sequence[str]) -> str:
    """Return the known parameters in a fixed order; others do not make another page."""
    found = ((name, request.GET.get(name, "")) for name in parameters)
    return urlencode([(name, value) for name, value in found if value])


def choice(request: HttpRequest, name: str, allowed: Sequence[str], default: str = "") -> str:
    value = request.GET.get(name, "") or default
    if value != default and value not in allowed:
        raise BadQuery(name, value, allowed)
    return value


def bad_query(error: BadQuery, form: str) -> HttpResponse:
    if form == "html":
        context = {"message": error.message, "fix": error.fix}
        return HttpResponse(render_to_string("400.html", context), status=400)
    detail = {"code": "bad_query", "message": error.message, "fix": error.fix}
    return HttpResponse(json.dumps({"error": detail}), status=400, content_type=TYPES["json"])


@functools.cache
def code_version() -> str:
    """Return a digest of code, templates and styles: a new release never shows old bodies."""
    root = Path(settings.BASE_DIR)
    digest = hashlib.sha256(settings.SOFTWARE_VERSION.encode())
    for pattern in ("leaderboard/**/*.py", "templates/**/*.html", "static/[cj]*s/*"):
        for path in sorted(root.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
