"""The site that `make up` starts: as in production, on plain HTTP and one machine."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tooling import places, services
from tooling.console import Failure

GIVEN = (
    *("DEBUG", "SECRET_KEY", "SECRET_KEY_FILE", "SECURE_COOKIES", "ALLOWED_HOSTS"),
    "STATIC_BROTLI",
)
ASK = """
import json
from django.conf import settings
from django.test import Client
client = Client(headers={"host": "127.0.0.1:8000"}, raise_request_exception=False)
lost, style = client.get("/nowhere"), settings.STATIC_ROOT.glob("css/site.*.css.gz")
login = client.get("/account/login")
print(json.dumps({
    "lost": [lost.status_code, lost.text],
    "styles": [path.name.removesuffix(".gz") for path in style],
    "key": settings.SECRET_KEY,
    "cookies": [bool(morsel["secure"]) for morsel in login.cookies.values()],
    "elsewhere": client.get("/", headers={"host": "evil.example"}).status_code,
}))
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in GIVEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("PKB_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(places, "PYTHON", sys.executable)
    return tmp_path


def test_it_shows_its_own_error_pages_and_hashed_compressed_files(state: Path) -> None:
    services.manage("collectstatic", "--noinput")
    assert not list((state / "static").rglob("*.br"))  # of which making takes ten seconds
    services.manage("migrate", "--noinput")
    told = json.loads(services.manage_and_read("shell", "-c", ASK).splitlines()[-1])
    status, text = told["lost"]
    assert status == 404
    assert "DEBUG = True" not in text
    assert "Using the URLconf" not in text
    (style,) = told["styles"]
    assert f"/static/css/{style}" in text
    assert told["cookies"] == [False]
    assert told["elsewhere"] == 400
    key = state / "secret_key"
    assert told["key"] == key.read_text()
    assert key.stat().st_mode & 0o077 == 0


def test_its_older_database_is_refused_with_what_to_do(state: Path) -> None:
    with closing(sqlite3.connect(state / "db.sqlite3")) as older, older:
        older.execute("CREATE TABLE django_migrations (id, app, name, applied)")
        older.execute("INSERT INTO django_migrations VALUES (1, 'leaderboard', '0094_x', NULL)")
    with pytest.raises(
        Failure, match=r"export with 0.1, import with 0.2.*manage.py restore FOLDER"
    ):
        services.manage("migrate", "--noinput")


def test_a_key_is_made_once_and_only_where_none_is_given(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "given")
    assert "SECRET_KEY_FILE" not in services.environment()
    assert not (state / "secret_key").exists()
    monkeypatch.setenv("SECRET_KEY", "")
    assert services.environment()["SECRET_KEY_FILE"] == str(state / "secret_key")
    key = (state / "secret_key").read_text()
    assert len(key) >= 50
    services.environment()
    assert (state / "secret_key").read_text() == key


def test_every_setting_makes_another_site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so `make up` starts it anew."""
    monkeypatch.setattr(services, "STARTED_FROM", ())
    text = (places.ROOT / "docs" / "settings.md").read_text()
    rows = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \|", text, re.M)
    names = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}
    assert {"DEBUG", "THROTTLE_READ", "NUM_PROXIES", "CUDA_HOME"} <= names
    known = {services.code_fingerprint()}
    for name in sorted(names - set(services.OURS)):
        monkeypatch.setenv(name, "something else")
        known.add(services.code_fingerprint())
    assert len(known) == len(names - set(services.OURS)) + 1
    key = state / "key"
    monkeypatch.setenv("SECRET_KEY_FILE", str(key))
    for text in ("one", "two"):
        key.write_text(text)
        known.add(services.code_fingerprint())
    assert len(known) == len(names - set(services.OURS)) + 3


def test_the_state_belongs_to_its_owner_alone(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PKB_STATE_DIR", str(tmp_path / "new"))
    places.make_state()
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    monkeypatch.delenv("PKB_STATE_DIR")
    monkeypatch.setattr(places, "ROOT", tmp_path)
    (tmp_path / ".local").mkdir(mode=0o755)
    places.make_state()
    assert (tmp_path / ".local").stat().st_mode & 0o077 == 0


def test_what_the_environment_says_of_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not services.is_debug()
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("SECURE_COOKIES", "1")
    assert services.environment()["SIGN_UP"] == "1"
    monkeypatch.setenv("SIGN_UP", "0")
    assert services.environment()["SIGN_UP"] == "0"
    assert services.is_debug()
    assert services.environment()["SECURE_COOKIES"] == "1"


def test_it_has_one_snapshot_to_cite_however_often_it_is_started(state: Path) -> None:
    services.manage("migrate", "--noinput")
    assert f"{state}/snapshots/" in services.ensure_snapshot()
    (kept,) = (state / "snapshots").iterdir()
    assert (kept / "MANIFEST.json").exists()
    assert services.ensure_snapshot() == f"{kept.name} is there already"
    assert list((state / "snapshots").iterdir()) == [kept]
