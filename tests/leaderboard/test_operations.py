"""What an operator's machines ask the site."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage, staticfiles_storage
from django.db import OperationalError
from django.db.migrations.executor import MigrationExecutor
from django.template import engines
from django.test import Client
from jinja2 import DictLoader
from prometheus_client.parser import text_string_to_metric_families

from evaluator import Verdict
from evaluator.messages.doorbell import UNREADABLE
from leaderboard.kit import doorbells
from leaderboard.kit.request_names import CURRENT, OnceAMinute
from leaderboard.models import DataVersion, Run
from leaderboard.operations import access_log, readiness
from tests.leaderboard import factory
from tooling import servers

pytestmark = pytest.mark.server

TOKEN = "of the metrics"


@pytest.fixture(autouse=True)
def _reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.kit.doorbells.is_reachable", lambda: True)


def test_the_process_says_that_it_answers_to_whatever_name(client: Client) -> None:
    answer = client.get("/healthz", headers={"host": "10.0.0.7"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_readiness_names_each_thing(db: None, client: Client, monkeypatch: Any) -> None:
    everything = dict.fromkeys(("schema", "database", "broker", "disk", "pages"), "ok")
    assert client.get("/readyz").json() == {"ready": True, **everything}
    monkeypatch.setattr("leaderboard.kit.doorbells.is_reachable", lambda: False)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["broker"]) == (200, "does not answer")
    monkeypatch.setattr(readiness, "LEAST_FREE_BYTES", 1 << 60)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["disk"].split()[1]) == (503, "MiB")


def test_a_site_without_static_files_or_templates_is_not_ready(
    db: None, client: Client, tmp_path: Path, monkeypatch: Any, settings: Any
) -> None:
    settings.DEBUG = False
    nothing = ManifestStaticFilesStorage(location=tmp_path)
    with monkeypatch.context() as uncollected:
        uncollected.setattr(staticfiles_storage, "url", nothing.url)
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "manage.py collectstatic" in answer.json()["pages"]
    assert client.get("/readyz").status_code == 200
    engine: Any = engines["jinja2"]
    monkeypatch.setattr(engine.env, "loader", DictLoader({}))
    engine.env.cache.clear()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["pages"][:9]) == (503, "templates")


def test_a_database_that_is_down_is_not_ready(db: None, client: Client, monkeypatch: Any) -> None:
    def down(*_: object) -> int:
        raise OperationalError("no route to secret.host")

    monkeypatch.setattr(DataVersion.objects, "current", down)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "does not answer")
    assert client.get("/healthz").status_code == 200


def test_an_older_schema_is_not_served(db: None, client: Client, monkeypatch: Any) -> None:
    missing = [("a migration", False)]
    with monkeypatch.context() as older:
        older.setattr(readiness, "_found_current", set())
        older.setattr(MigrationExecutor, "migration_plan", lambda *_: missing)
        for address in ("/", "/api/v1/status", "/account/login"):
            answer = client.get(address)
            assert (answer.status_code, answer["Retry-After"]) == (503, "30")
            assert "being upgraded" in answer.text
        assert "migrate" in client.get("/readyz").json()["schema"]
        older.setattr(MigrationExecutor, "migration_plan", lambda *_: [])
        assert client.get("/api/v1/status").status_code == 200


def _metrics(client: Client) -> dict[str, float]:
    answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_metrics_are_for_who_has_the_token(client: Client, settings: Any) -> None:
    assert client.get("/metrics").status_code == 404
    settings.METRICS_TOKEN = TOKEN
    for shown in ("", "Bearer other", "Bearer "):
        assert client.get("/metrics", headers={"authorization": shown}).status_code == 401


def test_metrics_tell_of_queues_hosts_and_verdicts(run: Run, client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    problem = run.kernel.problem
    factory.make_judged(factory.make_submission(), problem, Verdict.OUTPUT_MISMATCH)
    found = _metrics(client)
    assert found["pkb_runs cpu queued"] == 1
    assert found["pkb_runs cpu running"] == 0
    assert found["pkb_longest_wait_seconds cpu"] > 0
    assert found["pkb_hosts_alive cpu"] == 0
    assert found["pkb_verdicts_total output_mismatch"] == 1
    assert found["pkb_refused_reports_total"] == 0
    assert found["pkb_up database"] == 1


@pytest.mark.skipif(not shutil.which("redis-server"), reason="apt-get install redis-server")
def test_metrics_count_what_workers_could_not_read(
    db: None, client: Client, settings: Any, monkeypatch: Any
) -> None:
    settings.METRICS_TOKEN = TOKEN
    assert _metrics(client)["pkb_unreadable_messages"] == 0
    with servers.redis() as url:
        pytest.importorskip("redis").from_url(url).rpush(UNREADABLE, "one", "two")
        settings.CELERY_BROKER_URL = url
        monkeypatch.setenv("CELERY_BROKER_URL", url)  # Celery reads it, too
        monkeypatch.setattr(doorbells, "app", doorbells.make_app())
        assert _metrics(client)["pkb_unreadable_messages"] == 2
    assert "pkb_unreadable_messages" not in _metrics(client)


def _asked(application: Callable[..., Any], **more: str) -> dict[str, str]:
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    environ |= {"PATH_INFO": "/x", "QUERY_STRING": "a=1", "REMOTE_ADDR": "1.2.3.4", **more}
    told: dict[str, str] = {}
    start: Any = lambda _, headers: told.update(headers)  # noqa: E731
    access_log.observed(application)(environ, start)
    return told


def test_each_request_has_a_name_and_a_line(
    caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    names: list[str] = []

    def application(_: object, start: Callable[..., object]) -> list[bytes]:
        names.append(CURRENT.get())
        start("404 Not Found", [("Content-Length", "3")])
        return [b"abc"]

    forged = {"HTTP_X_REQUEST_ID": "chosen-by-them", "HTTP_X_FORWARDED_FOR": "6.6.6.6, 7.7.7.7"}
    with caplog.at_level(logging.INFO, "leaderboard.access"):
        told = _asked(application, **forged)
        settings.NUM_PROXIES = 1
        behind = _asked(application, **forged)
    assert told["X-Request-ID"] == names[0] != "chosen-by-them"
    assert behind["X-Request-ID"] == names[1] == "chosen-by-them"
    first, second = (json.loads(record.getMessage()) for record in caplog.records)
    expected = {"from": "1.2.3.4", "method": "GET", "path": "/x", "query": "a=1", "status": 404}
    assert expected.items() <= first.items()
    assert (first["request_id"], first["bytes"], second["from"]) == (names[0], 3, "7.7.7.7")
    assert CURRENT.get() == "-"


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/account/feed/s3cret.atom", "/account/feed/…"),
        ("/account/password/reset/1-s3cret", "/account/password/reset/…"),
        ("/account/email/confirm/s3cret", "/account/email/confirm/…"),
        ("/account/github/callback", "/account/github/callback"),
    ],
)
def test_what_opens_an_account_is_not_logged(
    caplog: pytest.LogCaptureFixture, path: str, logged: str
) -> None:
    def application(_: object, start: Callable[..., object]) -> list[bytes]:
        start("302 Found", [])
        return []

    with caplog.at_level(logging.INFO, "leaderboard.access"):
        _asked(application, PATH_INFO=path, QUERY_STRING="code=s3cret")
    [said] = (json.loads(record.getMessage()) for record in caplog.records)
    assert (said["path"], said["query"]) == (logged, "")


def test_one_fault_is_mailed_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    passes, record = OnceAMinute().filter, logging.makeLogRecord({})
    assert [passes(record), passes(record)] == [True, False]
    now[0] = 61.0
    assert passes(record)
