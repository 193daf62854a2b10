"""What a site on SQLite does while somebody else holds the write lock."""

from __future__ import annotations

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


def test_a_first_request_under_a_lock_reads_json(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{path}",
        "DJANGO_SETTINGS_MODULE": "leaderboard.settings",
    }
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode=WAL")
        holder.execute("CREATE TABLE leaderboard_problem (id integer, number integer)")
        holder.execute("BEGIN IMMEDIATE")
        found = subprocess.run(
            [sys.executable, "-c", ASK],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert found.stdout == "[]\n", found.stderr[-500:]
