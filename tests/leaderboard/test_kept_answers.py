"""A public answer that is still true is repeated without asking sessions, routes or views."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from leaderboard import kept_answers
from leaderboard.models import DataVersion, Visibility
from leaderboard.pages import PUBLIC
from tests.leaderboard import factory

pytestmark = pytest.mark.django_db
Queries = Callable[[int], object]


def test_only_the_version_is_asked_for_when_a_page_is_repeated(
    client: Client, django_assert_num_queries: Queries
) -> None:
    first = client.get("/methodology")
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        again = client.get("/methodology")
    assert (again.status_code, again.content) == (200, first.content)
    assert dict(again.items()) == dict(first.items())


def test_a_change_of_public_data_is_seen_at_once(client: Client) -> None:
    assert b"Model One" not in client.get("/").content
    factory.make_judged(factory.make_submission("Model One"), factory.make_problem(), speedup=2.0)
    DataVersion.objects.bump()
    assert b"Model One" in client.get("/").content


def test_who_knows_the_body_is_told_so_with_the_same_headers(client: Client) -> None:
    first = client.get("/methodology")
    same = client.get("/methodology", headers={"If-None-Match": first["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    named = ("ETag", "Cache-Control", "Vary", "Content-Security-Policy", "X-Frame-Options")
    assert {same[name] for name in named} == {first[name] for name in named}
    other = client.get("/methodology", headers={"If-None-Match": 'W/"another"'})
    assert other.status_code == 200


def test_who_cannot_unpack_gets_a_plain_body(client: Client) -> None:
    small = client.get("/methodology", headers={"Accept-Encoding": "gzip"})
    plain = client.get("/methodology")
    assert gzip.decompress(small.content) == plain.content
    assert client.get("/methodology", headers={"Accept-Encoding": "gzip"}).content == small.content


def test_what_only_its_owner_may_see_is_never_repeated(client: Client, owner: User) -> None:
    submission = factory.make_submission("Model One", owner="owner", visibility=Visibility.PRIVATE)
    address = f"/submissions/{submission.pk}"
    client.force_login(owner)
    assert client.get(address).status_code == 200
    client.logout()
    assert client.get(address).status_code == 404


def public(body: bytes, **others: str) -> HttpResponse:
    headers = {"Cache-Control": PUBLIC, "Vary": "Accept-Encoding", "ETag": 'W/"0-code-page"'}
    return HttpResponse(body, headers=headers | others)


@pytest.mark.parametrize(
    ("method", "status", "others"),
    [
        ("HEAD", 200, {}),
        ("POST", 200, {}),
        ("GET", 404, {}),
        ("GET", 200, {"Cache-Control": "no-cache"}),
        ("GET", 200, {"Vary": "Accept, Cookie"}),
    ],
)
def test_nothing_else_is_repeated(method: str, status: int, others: dict[str, str]) -> None:
    answers = iter([b"first", b"second"])

    def handler(request: HttpRequest) -> HttpResponse:
        answer = public(next(answers), **others)
        answer.status_code = status
        return answer

    repeat = kept_answers.repeat_public(handler)
    request = RequestFactory().generic(method, "/")
    assert [repeat(request).content, repeat(request).content] == [b"first", b"second"]


def test_the_oldest_answers_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_BYTES", 5000)
    asked = []

    def handler(request: HttpRequest) -> HttpResponse:
        asked.append(request.GET["n"])
        return public(b"ten bytes.")

    repeat = kept_answers.repeat_public(handler)
    for number in (1, 2, 3, 3, 2, 1):
        assert repeat(RequestFactory().get("/", {"n": number})).content == b"ten bytes."
    assert asked == ["1", "2", "3", "1"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no server to go away")
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_its_server_ended_is_opened_anew(client: Client) -> None:
    body = client.get("/methodology").content
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (number,) = cursor.fetchone()
    other = connection.copy("other")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [number])
    other.close()
    assert client.get("/methodology").content == body


def test_the_version_is_all_that_a_repeated_page_asks_its_database(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether an old connection still works is seen by asking."""
    client.get("/methodology")
    known = connections[connection.alias]
    monkeypatch.setattr(known, "health_check_enabled", True)
    monkeypatch.setattr(known, "health_check_done", False)
    monkeypatch.setattr(known, "is_usable", lambda: pytest.fail("asked whether it is usable"))
    assert client.get("/methodology").status_code == 200
