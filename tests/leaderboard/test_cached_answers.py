"""A public answer that is still true is repeated without making a request of Django."""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection, connections
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from leaderboard.delivery import cached_answers
from leaderboard.delivery.pages import PUBLIC
from leaderboard.models import DataVersion, Visibility
from leaderboard.wsgi import application
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
Queries = Callable[[int], object]


class Answer(NamedTuple):
    status: str
    headers: dict[str, str]
    body: bytes


def ask(
    address: str, served: WSGIApplication = application, method: str = "GET", **headers: str
) -> Answer:
    """As a server does; without the name that each request gets."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    environ = RequestFactory().generic(method, address, headers=named).environ
    told: list[Any] = []
    response: Any = served(environ, lambda *said: told.extend(said))  # type: ignore[arg-type]
    body = b"".join(response)
    if hasattr(response, "close"):
        response.close()
    told_headers = {name: text for name, text in told[1] if name != "X-Request-ID"}
    return Answer(told[0], told_headers, body)


@pytest.fixture(autouse=True)
def _connections_stay() -> Iterator[None]:
    """As in Django's own test client: a request must not end the transaction of a test."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_only_the_version_is_asked_for_when_a_page_is_repeated(
    django_assert_num_queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask("/methodology")
    monkeypatch.setattr(request_started, "send", None)  # Django would say that it begins
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        assert ask("/methodology") == first
    assert first.status == "200 OK"


def test_a_change_of_public_data_is_seen_at_once() -> None:
    assert b"Model One" not in ask("/").body
    factory.make_judged(factory.make_submission("Model One"), factory.make_problem(), speedup=2.0)
    DataVersion.objects.bump()
    assert b"Model One" in ask("/").body


def test_a_page_that_is_made_anew_asks_once_for_the_version() -> None:
    """Before anything else: what is kept under a version must not be older."""
    first = ask("/problems")
    DataVersion.objects.bump()
    with CaptureQueriesContext(connection) as queries:
        assert ask("/problems").headers["ETag"] != first.headers["ETag"]
    assert ["dataversion" in query["sql"] for query in queries].index(True) == 0
    assert sum("dataversion" in query["sql"] for query in queries) == 1


def test_who_knows_the_body_is_told_so_with_the_same_headers() -> None:
    first = ask("/methodology")
    same = ask("/methodology", If_None_Match=first.headers["ETag"])
    assert (same.status, same.body) == ("304 Not Modified", b"")
    named = ("ETag", "Cache-Control", "Vary", "Content-Security-Policy", "X-Frame-Options")
    assert {same.headers[name] for name in named} == {first.headers[name] for name in named}
    assert ask("/methodology", If_None_Match='W/"another"').status == "200 OK"


def test_who_cannot_unpack_gets_a_plain_body() -> None:
    small = ask("/methodology", Accept_Encoding="gzip")
    plain = ask("/methodology")
    assert gzip.decompress(small.body) == plain.body
    assert ask("/methodology", Accept_Encoding="gzip") == small


def test_what_only_its_owner_may_see_is_never_repeated(client: Client, owner: User) -> None:
    submission = factory.make_submission("Model One", owner="owner", visibility=Visibility.PRIVATE)
    address = f"/submissions/{submission.pk}"
    client.force_login(owner)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    assert ask(address, Cookie=cookie).status == "200 OK"
    assert ask(address).status == "404 Not Found"


def test_an_answer_is_for_the_host_and_the_scheme_that_were_asked() -> None:
    ours = ask("/sitemap.xml", Host="testserver").body
    assert b"http://testserver/" in ours
    assert b"http://localhost/" in ask("/sitemap.xml", Host="localhost").body
    assert ask("/sitemap.xml", Host="elsewhere.example").status == "400 Bad Request"
    assert ask("/sitemap.xml", Host="testserver").body == ours


def serving(answers: Iterable[HttpResponse]) -> WSGIApplication:
    """Answers one after the other."""
    left = iter(answers)

    def served(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        answer = next(left)
        status = f"{answer.status_code} {answer.reason_phrase}"
        start_response(status, list(answer.items()))
        return answer

    return cached_answers.repeat_public(served)


def public(body: bytes, status: int = 200, **others: str) -> HttpResponse:
    headers = {"Cache-Control": PUBLIC, "Vary": "Accept-Encoding", "ETag": 'W/"0-code-page"'}
    named = {name.replace("_", "-"): text for name, text in others.items()}
    return HttpResponse(body, status=status, headers=headers | named)


@pytest.mark.parametrize(
    ("method", "status", "others"),
    [
        ("POST", 200, {}),
        ("GET", 404, {}),
        ("GET", 200, {"Cache_Control": "no-cache"}),
        ("GET", 200, {"Vary": "Accept, Cookie"}),
    ],
)
def test_nothing_else_is_repeated(method: str, status: int, others: dict[str, str]) -> None:
    served = serving(public(body, status, **others) for body in (b"first", b"second"))
    assert [ask("/", served, method).body for _ in range(2)] == [b"first", b"second"]


def test_who_asks_for_headers_gets_no_body() -> None:
    made = ask("/methodology", method="HEAD")
    page = ask("/methodology")
    kept = ask("/methodology", method="HEAD")
    assert (made.status, kept.status) == ("200 OK", "200 OK")
    assert made.body == kept.body == b""
    assert made.headers == kept.headers == page.headers
    assert len(page.body) == int(page.headers["Content-Length"])


def test_an_answer_of_headers_is_not_kept() -> None:
    served = serving(public(body) for body in (b"first", b"second"))
    assert ask("/", served, "HEAD").body == b""
    assert ask("/", served).body == b"second"


def test_the_oldest_answers_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_answers, "MOST_BYTES", 5000)
    bodies = (f"the {number}. answer".encode() for number in range(9))
    served = serving(map(public, bodies))
    found = [ask(f"/?n={number}", served).body[4:5] for number in (1, 2, 3, 3, 2, 1)]
    assert found == [b"0", b"1", b"2", b"2", b"1", b"3"]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_its_server_ended_is_opened_anew() -> None:
    first = ask("/methodology")
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (number,) = cursor.fetchone()
        other = connection.copy("other")
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [number])
        other.close()
    else:  # has no server that could end it
        connection.close()
    assert ask("/methodology") == first


def test_the_version_is_all_that_a_repeated_page_asks_its_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether an old connection still works is seen by asking."""
    first = ask("/methodology")
    known = connections[connection.alias]
    monkeypatch.setattr(known, "health_check_enabled", True)
    monkeypatch.setattr(known, "health_check_done", False)
    monkeypatch.setattr(known, "is_usable", lambda: pytest.fail("asked whether it is usable"))
    assert ask("/methodology") == first


@pytest.mark.parametrize(("headers", "made"), [({}, 1), ({"Authorization": "Token x"}, 4)])
def test_an_answer_for_all_is_made_once_for_those_who_ask_together(
    headers: dict[str, str], made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who shows who they are may get another answer, so they do not wait for one another."""
    monkeypatch.setattr(DataVersion.objects, "current", lambda: 7)
    makers: list[None] = []

    def slow(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        makers.append(None)
        time.sleep(0.2)
        says = {"Cache-Control": PUBLIC, "Vary": "Accept-Encoding", "ETag": 'W/"7-"'}
        found = HttpResponse(b"the board", headers=says)
        start_response("200 OK", list(found.items()))
        return found

    served = cached_answers.repeat_public(slow)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, "/together", served, **headers) for _ in range(4)]
    assert {one.result().body for one in asked} == {b"the board"}
    assert len(makers) == made
    cached_answers.CACHED.clear()


def test_threads_may_change_the_cache_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread notes answers at addresses of its own, so that the oldest make room all the time;
    a server would answer 500 to whoever was asking when that fails."""
    monkeypatch.setattr(DataVersion.objects, "current", lambda: 7)
    monkeypatch.setattr(cached_answers, "MOST_BYTES", 100 * cached_answers.HEADERS_BYTES)

    def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        says = {"Cache-Control": PUBLIC, "Vary": "Accept-Encoding", "ETag": 'W/"7-"'}
        found = HttpResponse(environ["QUERY_STRING"], headers=says)
        start_response("200 OK", list(found.items()))
        return found

    def asked(queries: Iterable[str]) -> list[bytes]:
        return [ask(f"/?{query}", served).body for query in queries]

    served = cached_answers.repeat_public(echo)
    queries = [[f"{thread}&{n}" for n in range(250)] for thread in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(queries)) as pool:
            bodies = list(pool.map(asked, queries))
    finally:
        sys.setswitchinterval(interval)
    assert bodies == [[one.encode() for one in own] for own in queries]
    cached_answers.CACHED.clear()
