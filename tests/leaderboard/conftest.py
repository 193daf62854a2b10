"""The cast of the site's tests, and a database and a doorbell that are theirs alone."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, connections
from rest_framework.response import Response
from rest_framework.test import APIClient

from leaderboard.delivery.cached_answers import CACHED
from leaderboard.models import ApiToken, Hardware, Problem, Run, Scope
from leaderboard.operations import readiness
from tests.leaderboard import factory
from tests.leaderboard.uploads import URL, Send

Bells = list[tuple[UUID, str]]
Api = Callable[..., APIClient]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a database: only that has to run on each kind of them."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        by_fixture = {"db", "transactional_db", "live_server"} & fixtures
        if by_fixture or item.get_closest_marker("django_db"):
            item.add_marker(pytest.mark.database)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite in a file, not in memory: threads and processes meet there as they do on a site."""
    database: Any = connections.settings["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(scope="session", autouse=True)
def _no_static_files() -> None:
    """Each client would look for all of them anew: a ninth of these tests' time. A browser's server
    finds them by itself."""
    settings.WHITENOISE_USE_FINDERS = False


@pytest.fixture(autouse=True)
def bells(monkeypatch: pytest.MonkeyPatch) -> Bells:
    """Every ring of the doorbell, none of which reaches a broker."""
    rung: Bells = []

    def ring(bells: Bells) -> int:
        rung.extend(bells)
        return len(bells)

    monkeypatch.setattr("leaderboard.submissions.queue.ring_later", ring)
    monkeypatch.setattr("leaderboard.runs.hosts.ring", ring)
    monkeypatch.setattr("leaderboard.runs.hosts.deliver_later", lambda: None)
    return rung


@pytest.fixture(scope="session", autouse=True)
def _known_features(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> None:
    """SQLite is asked once in a process whether it knows JSON, and any database whether its schema
    is this release's; no test counts these queries. Where no test asks for a database none is
    made, and the site's own stays alone."""
    if not any(item.get_closest_marker("database") for item in request.session.items):
        return
    with django_db_blocker.unblock():
        assert connection.features.supports_json_field
        assert readiness.is_schema_current()


@pytest.fixture(autouse=True)
def _fresh_caches(
    _known_features: None, django_db_blocker: Any, request: pytest.FixtureRequest
) -> None:
    """Of answers, and of how often somebody asked. That is counted in a table as well, which is no
    model's: what a test has committed there stays."""
    CACHED.clear()
    caches["process"].clear()
    marker = request.node.get_closest_marker("django_db")
    commits = marker is not None and marker.kwargs.get("transaction")
    if commits or {"live_server", "transactional_db"} & set(request.fixturenames):
        with django_db_blocker.unblock():
            caches["default"].clear()


@pytest.fixture(scope="session", autouse=True)
def _emptied_audit_log(django_db_setup: None, django_db_blocker: Any) -> None:
    """What a test has committed is deleted after it, on SQLite row by row, which the log refuses:
    there, and there alone, it lets them go. Tests in a browser have connections of their own."""
    operations: Any = type(connection.ops)
    execute = operations.execute_sql_flush
    triggers = importlib.import_module("leaderboard.migrations._append_only")

    def flush(own: Any, statements: list[str]) -> None:
        with own.connection.schema_editor() as editor:
            triggers.allow_deletion(apps, editor)
        execute(own, statements)
        with own.connection.schema_editor() as editor:
            triggers.refuse_deletion(apps, editor)

    if connection.vendor == "sqlite":
        operations.execute_sql_flush = flush


@pytest.fixture
def owner(db: None) -> User:
    return factory.make_user("owner")


@pytest.fixture
def other(db: None) -> User:
    return factory.make_user("other")


@pytest.fixture
def staff(db: None) -> User:
    return factory.make_staff()


@pytest.fixture
def problem(db: None) -> Problem:
    Hardware.objects.get_or_create(
        slug="cpu", defaults={"title": "CPU", "device": "cpu", "max_world_size": 8}
    )
    return factory.make_problem()


@pytest.fixture
def run(problem: Problem) -> Run:
    """A queued run of a public submission of `owner`."""
    return factory.make_run(factory.make_kernel(factory.make_submission(), problem))


@pytest.fixture
def judged(problem: Problem) -> Run:
    """A result of a public submission of `owner`."""
    return factory.make_judged(factory.make_submission("Fast One"), problem)


@pytest.fixture
def api() -> Api:
    """A client: of nobody, of a user with a scope, or of a worker."""

    def client(user: User | None = None, scope: Scope | None = None) -> APIClient:
        made = APIClient()
        if user or scope:
            _, text = ApiToken.objects.issue(scope=scope or Scope.SUBMIT, name="test", owner=user)
            made.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        return made

    return client


@pytest.fixture
def submitter(owner: User, api: Api) -> APIClient:
    return api(owner)


@pytest.fixture
def send(api: Api, owner: User, problem: Problem) -> Send:
    """Post a submission as `owner`: fields as JSON, or with an archive as a form."""
    for row in (problem, factory.make_problem(2, "allgather")):
        row.payload["tolerances"]["bfloat16"] = {"atol": 3e-2, "rtol": 2e-2}
        row.save()

    def post(fields: Mapping[str, Any], archive: bytes | None = None, **headers: str) -> Response:
        client = api(owner)
        if archive is None:
            text = json.dumps(fields)
            return client.post(URL, text, content_type="application/json", headers=headers)
        form = {**fields, "archive": SimpleUploadedFile("kernels", archive)}
        return client.post(URL, form, format="multipart", headers=headers)

    return post


@pytest.fixture
def worker(db: None, api: Api) -> APIClient:
    return api(scope=Scope.WORKER)
