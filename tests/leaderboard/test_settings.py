"""Settings from the environment: what they mean, and complaints that say how to mend them."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client

from leaderboard.account_pages import login_settings
from leaderboard.kit import environment as env
from leaderboard.kit.secret_key_file import secret_key_path
from leaderboard.models import LanguageModel


@pytest.mark.parametrize(
    ("url", "engine", "name"),
    [
        ("sqlite:///db.sqlite3", "sqlite3", "db.sqlite3"),
        ("sqlite:////var/db.sqlite3", "sqlite3", "/var/db.sqlite3"),
        ("postgresql://u:p%40ss@host:5433/pkb?sslmode=require", "postgresql", "pkb"),
        ("postgresql://u:p%40ss@host:5433/pkb?server_side_binding=no", "postgresql", "pkb"),
    ],
)
def test_a_database_is_named_by_an_address(url: str, engine: str, name: str) -> None:
    found = env.database(url)
    assert found["ENGINE"].endswith(engine)
    assert found["NAME"] == name
    if engine == "postgresql":
        assert (found["USER"], found["PASSWORD"], found["PORT"]) == ("u", "p@ss", "5433")
        assert found["OPTIONS"]["prepare_threshold"] == 2
        is_pooled = "server_side_binding=no" in url
        assert (found["OPTIONS"]["server_side_binding"] is True) is not is_pooled
        assert found["OPTIONS"].get("sslmode") == (None if is_pooled else "require")


@pytest.mark.django_db
def test_a_statement_that_comes_again_is_planned_once() -> None:
    """SQLite keeps those of a connection by itself."""
    for _ in range(4):
        assert not LanguageModel.objects.filter(name="nobody").exists()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM pg_prepared_statements")
            assert any("leaderboard_languagemodel" in text for (text,) in cursor.fetchall())


@pytest.mark.parametrize("url", ["mysql://h/x", "sqlite://", "sqlite://host/x", "pkb"])
def test_an_address_of_another_database_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        env.database(url)


def test_a_secret_may_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from a file\n")
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    assert env.text("SECRET_KEY") == "from a file"
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match="cannot be read"):
        env.text("SECRET_KEY")


def test_settings_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME", "maybe")
    with pytest.raises(ImproperlyConfigured, match="SOME=maybe"):
        env.flag("SOME", default=False)
    with pytest.raises(ImproperlyConfigured, match="whole number"):
        env.number("SOME", 1)
    with pytest.raises(ImproperlyConfigured, match="Set OTHER"):
        env.text("OTHER")


@pytest.mark.parametrize(
    ("given", "backend"),
    [({}, "filebased"), ({"EMAIL_HOST": "mx"}, "smtp"), ({"ADMINS": "a@example.org"}, "smtp")],
)
def test_mail_is_kept_where_no_server_is_named_and_nobody_waits_for_faults(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], backend: str
) -> None:
    for name in ("EMAIL_HOST", "ADMINS"):
        monkeypatch.setenv(name, given.get(name, ""))
    read = runpy.run_path(login_settings.__file__)
    assert read["EMAIL_BACKEND"] == f"django.core.mail.backends.{backend}.EmailBackend"
    assert read["EMAIL_HOST"] == given.get("EMAIL_HOST", "localhost")


def test_a_development_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    key = secret_key_path(tmp_path).read_text()
    assert len(key) >= 50
    assert secret_key_path(tmp_path).read_text() == key
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def _check(**changes: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBUG": "0", **changes}
    command = [sys.executable, "manage.py", "check", "--deploy"]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )


def test_a_production_site_needs_a_secret_key(tmp_path: Path) -> None:
    done = _check(SECRET_KEY="", PKB_STATE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "Set SECRET_KEY" in done.stderr
    short = _check(SECRET_KEY="changeme", PKB_STATE_DIR=str(tmp_path / "state"))
    assert "SECRET_KEY has less than 50" in short.stderr
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "secret_key").exists()


@pytest.mark.parametrize(
    ("key", "hosts", "complaint"),
    [
        ("changeme", ["a.org"], "SECRET_KEY has less than 50"),
        ("x" * 60, ["a.org"], "SECRET_KEY has"),
        ("0123456789abcdef" * 4, ["a.org", "*"], "ALLOWED_HOSTS"),
    ],
)
def test_a_production_site_refuses_what_is_easily_guessed(
    key: str, hosts: list[str], complaint: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=complaint):
        env.check_public(key, hosts)
    env.check_public("0123456789abcdef" * 4, ["a.org", "b.org"])


def test_a_production_site_as_documented_passes_djangos_own_check(tmp_path: Path) -> None:
    done = _check(
        SECRET_KEY="k" * 25 + "0123456789abcdefghijklmnopqrstuv",
        ALLOWED_HOSTS="leaderboard.example.org",
        SECURE_SSL_REDIRECT="1",
        SECURE_HSTS_SECONDS="3600",
        PKB_STATE_DIR=str(tmp_path),
    )
    left = [line for line in done.stderr.splitlines() if "security.W" in line]
    assert done.returncode == 0, done.stderr
    assert all("W005" in line or "W021" in line for line in left), left  # HSTS of other hosts


def test_answers_carry_the_security_headers(db: None, client: Client) -> None:
    answer = client.get("/api/v1/status")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert (answer["X-Frame-Options"], answer["Referrer-Policy"]) == ("DENY", "same-origin")


def test_sqlite_waits_and_writes_ahead(db: None) -> None:
    if connection.vendor != "sqlite":
        assert connection.vendor == "postgresql"
        return
    with connection.cursor() as cursor:
        found = [
            cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 1, 1]
    assert connection.settings_dict["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_command_does_not_act_on_an_empty_site_beside_the_real_one(tmp_path: Path) -> None:
    site = tmp_path / "site.env"
    site.write_text(
        f"# ours\nDEBUG=0\nSECRET_KEY='{'a1b2c3' * 10}'\nALLOWED_HOSTS=pkb.example.org\n"
        f"DATABASE_URL=sqlite:///{tmp_path}/site.sqlite3\nPKB_STATE_DIR={tmp_path}/state\n"
    )
    settled = ("DATABASE_URL", "DATABASE_URL_FILE", "PKB_STATE_DIR")
    inherited = {name: value for name, value in os.environ.items() if name not in settled}
    environment = {**inherited, "PKB_SITE_ENV": str(site)}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=settings.BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = run(sys.executable, "manage.py", "check")
    assert refused.returncode == 1
    assert "docker/pkb-manage" in refused.stderr
    told = "from leaderboard.kit.environment import described_site; print(described_site())"
    said = run(sys.executable, "docker/pkb-manage", "shell", "--no-imports", "-c", told)
    assert f"database {tmp_path}/site.sqlite3, state in {tmp_path}/state" in said.stdout
