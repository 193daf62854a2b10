"""A number of a board is declared once: what docs/architecture.md says to change is enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from leaderboard.metrics.board_numbers import NUMBERS

ROOT = Path(settings.BASE_DIR)
COPIED = ("leaderboard", "templates")
LINKED = ("evaluator", "fixtures", "problems", "static", "tests")
MOST_FILES = 8
DECLARED = """
    Number(
        key="overlap",
        summed=Summing.MEDIAN,
        label="Overlap",
        unit="%",
        group="fast",
        cell="per_cent",
        is_timed=True,
        in_category=True,
        snapshot="overlap",
        means="Share of the profiled time that hides communication.",
        anchor="speedup",
    ),
"""
# What the recipe says, by file: a text and what comes behind it.
STEPS = {
    "leaderboard/models/runs.py": (
        "    idle = models.FloatField(null=True)\n",
        "    overlap = models.FloatField(null=True)\n",
    ),
    "leaderboard/runs/reports.py": (
        '        "idle": idle_share(message["timelines"]),\n',
        '        "overlap": 0.375,\n',
    ),
    "leaderboard/metrics/board_numbers.py": ("NUMBERS = (", DECLARED),
    "leaderboard/models/catalogue.py": ("SUMMARY_FORMAT = ", "10"),
}
READ = """
import django
django.setup()
from django.core.management import call_command
call_command("makemigrations", "leaderboard", verbosity=0)
call_command("migrate", verbosity=0)
from django.test import Client
from leaderboard.publishing import snapshot_tables
from leaderboard.read_model import summary_check
from tests.leaderboard import gpu_report
gpu_report.make_gpu_run()
client = Client(SERVER_NAME="localhost")
(row,) = client.get("/leaderboard.json?sort=overlap").json()["rows"]
assert row["overlap"] == 0.375, row
head, line = client.get("/leaderboard.csv").text.splitlines()
assert dict(zip(head.split(","), line.split(",")))["overlap"] == "0.375", line
page = client.get("/?sort=-overlap").text
assert "Overlap" in page and "37.5</td>" in page and "that hides communication" in page
assert "37.5</td>" in client.get("/categories/tensor").text
places = next(table for table in snapshot_tables.TABLES if table.name == "places")
(place,) = places.rows()
assert dict(zip(places.kinds, place))["overlap"] == 0.375, place
assert not summary_check.differences()
"""


def recipe() -> str:
    """The steps for a number in the tour."""
    tour = (ROOT / "docs" / "architecture.md").read_text()
    return tour.partition("**A number of the board.**")[2].partition("\n**")[0]


@pytest.mark.slow
def test_a_number_is_added_by_what_the_recipe_says(tmp_path: Path) -> None:
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in LINKED:
        (tmp_path / name).symlink_to(ROOT / name)
    for name, (before, behind) in STEPS.items():
        text = (tmp_path / name).read_text()
        assert text.count(before) == 1
        (tmp_path / name).write_text(text.replace(before, before + behind))
    state = {
        "PKB_STATE_DIR": str(tmp_path / "state"),
        "DJANGO_SETTINGS_MODULE": "leaderboard.settings",
    }
    own = {**os.environ, **state, "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3"}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=tmp_path,
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_recipe_names_the_files_and_they_are_few() -> None:
    named = re.findall(r"^\d\. `([\w./]+)`", recipe(), re.MULTILINE)
    assert named == [*STEPS, "docs/data.md", "CHANGELOG.md"]
    assert len(named) + 1 <= MOST_FILES  # with the migration, which has a name of its own


def test_docs_say_of_a_number_what_its_declaration_says() -> None:
    page = (ROOT / "docs" / "data.md").read_text()
    rows = [f"| `{one.snapshot}` | {one.means} |" for one in NUMBERS if one.snapshot]
    assert not [row for row in rows if row not in page]
