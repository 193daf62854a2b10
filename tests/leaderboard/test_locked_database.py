"""What a site on SQLite does while somebody else holds the write lock."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import django
django.setup()
from django.db import connection
connection.settings_dict["OPTIONS"]["timeout"] = 0.1
from django.db.models import Value
from django.db.models.functions import JSONObject
from leaderboard.models import Problem
print(list(Problem.objects.annotate(told=JSONObject(one=Value(1))).values_list("told", flat=True)))
"""


READ = """
import sqlite3
import django
django.setup()
from django.db import connection, transaction
from leaderboard.kit.one_moment import at_one_moment

def count():
    with connection.cursor() as cursor:
        return cursor.execute("SELECT count(*) FROM leaderboard_problem").fetchone()[0]

def write():
    with sqlite3.connect(connection.settings_dict["NAME"], timeout=0.1) as other:
        other.execute("INSERT INTO leaderboard_problem VALUES (1, 1)")

with at_one_moment():
    seen = [count()]
    write()
    seen.append(count())
seen.append(count())
with transaction.atomic():
    try:
        write()
    except sqlite3.OperationalError:
        print(seen)
"""

COUNT = """
import django
django.setup()
from django.core.cache import caches
from django.db import OperationalError, connection
connection.settings_dict["OPTIONS"]["timeout"] = 0.1
try:
    print(caches["default"].add("login", 1, 60))
except OperationalError:
    print("locked")
"""
NOTE = """
import time
import django
django.setup()
from django.db import connection
from leaderboard.models import ApiToken
began = time.monotonic()
ApiToken.objects.note_use(ApiToken(pk=1))
print(time.monotonic() - began < 5)
with connection.cursor() as cursor:
    print(cursor.execute("SELECT last_used_at FROM leaderboard_apitoken").fetchone()[0] is None)
    print(cursor.execute("PRAGMA busy_timeout").fetchone()[0])
"""
TABLES = (
    "CREATE TABLE leaderboard_shared_cache (cache_key text, value text, expires datetime)",
    "CREATE TABLE leaderboard_apitoken (id integer, last_used_at datetime)",
    "INSERT INTO leaderboard_apitoken VALUES (1, NULL)",
)
LOCK = "BEGIN IMMEDIATE"


def test_a_login_that_cannot_be_counted_is_no_login_tried_too_often(tmp_path: Path) -> None:
    assert _run(COUNT, tmp_path, *TABLES) == "True\n"
    assert _run(COUNT, tmp_path, LOCK) == "locked\n"


def test_a_request_with_a_token_does_not_wait_to_note_its_use(tmp_path: Path) -> None:
    assert _run(NOTE, tmp_path, *TABLES, LOCK) == "True\nTrue\n20000\n"
    assert _run(NOTE, tmp_path) == "True\nFalse\n20000\n"


def test_who_reads_at_one_moment_keeps_nobody_from_writing(tmp_path: Path) -> None:
    assert _run(READ, tmp_path) == "[0, 0, 1]\n"


def test_a_first_request_under_a_lock_reads_json(tmp_path: Path) -> None:
    assert _run(ASK, tmp_path, LOCK) == "[]\n"


def test_no_command_holds_the_lock_for_long_on_the_shipped_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.leaderboard.lock_times", str(tmp_path)]
    found = subprocess.run(
        command, cwd=ROOT, env=_site(tmp_path), capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    held_ms = json.loads(found.stdout)
    assert {name: ms for name, ms in held_ms.items() if ms > 200} == {}
    assert held_ms["rebuild_summary"] > 1


def _site(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        "DJANGO_SETTINGS_MODULE": "leaderboard.settings",
        "PKB_STATE_DIR": str(folder),
    }


def _run(program: str, folder: Path, *meanwhile: str) -> str:
    """Return what a program prints on a site whose table of problems is empty, while another
    connection has done `meanwhile`."""
    with closing(sqlite3.connect(folder / "db.sqlite3", isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode=WAL")
        holder.execute(
            "CREATE TABLE IF NOT EXISTS leaderboard_problem (id integer, number integer)"
        )
        for statement in meanwhile:
            holder.execute(statement)
        command = [sys.executable, "-c", program]
        found = subprocess.run(
            command, cwd=ROOT, env=_site(folder), capture_output=True, text=True, check=False
        )
    return found.stdout or found.stderr
