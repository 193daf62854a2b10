"""What pages cost on any machine: queries, bytes, modules. Times are in docs/performance.md."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import brotli
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.messages.report import Verdict
from leaderboard.models import Problem, Submission
from tests.leaderboard import factory

STATIC = Path(settings.BASE_DIR) / "static"
ROWS = 30
BYTES_OF_A_BOARD_ROW = 400
BYTES_OF_A_MATRIX_ROW = 150
FEW_QUERIES = 4
# The first page reads its findings too, a problem its fastest kernel of any setting.
FRONT_QUERIES = 6
BYTES_OF_A_FIRST_FIGURE, BYTES_OF_A_NEXT_ONE = 500_000, 20_000
SERVE = """
import sys
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
call_command("sync_problems", verbosity=0)
call_command("import_published", verbosity=0)
client = Client(SERVER_NAME="localhost")
pages = ("/", "/matrix", "/categories", "/problems", "/problems/1-allreduce", "/methodology")
assert [client.get(page).status_code for page in pages] == [200] * len(pages)
print(*sys.modules)
"""


@pytest.fixture
def crowd(problem: Problem) -> None:
    """Many submissions on two problems."""
    other = factory.make_problem(2, "gemm", "expert")
    for number in range(ROWS):
        submission = factory.make_submission(f"Model {number}", k=2)
        factory.make_judged(submission, problem, speedup=0.5 + number / 10)
        factory.make_judged(submission, other, Verdict.OUTPUT_MISMATCH)


def queries_of(address: str, client: Client) -> int:
    """Besides the one for the data version, and what a process asks the database once."""
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
        return sum("dataversion" not in query["sql"] for query in queries)


def gzip_bytes(address: str, client: Client) -> int:
    return len(client.get(address, headers={"Accept-Encoding": "gzip"}).content)


@pytest.mark.usefixtures("crowd")
def test_queries_do_not_grow_with_the_rows(client: Client) -> None:
    problem = f"/problems/1-{Problem.objects.get(pk=1).slug}"
    pages = ("/", "/?p=1.5", "/?nccl=no", "/matrix", "/categories", "/problems", problem)
    counted = {address: queries_of(address, client) for address in pages}
    dear = [counted.pop(address) for address in ("/", problem)]
    assert max(dear) <= FRONT_QUERIES, dear
    assert max(counted.values()) <= FEW_QUERIES, counted


@pytest.mark.usefixtures("crowd")
def test_a_row_is_a_few_bytes(client: Client) -> None:
    """Beyond what a page without rows weighs."""
    for address, most in {"/": BYTES_OF_A_BOARD_ROW, "/matrix": BYTES_OF_A_MATRIX_ROW}.items():
        empty = gzip_bytes(f"{address}?harness=human", client)
        assert (gzip_bytes(address, client) - empty) / ROWS < most, address


@pytest.mark.usefixtures("crowd")
def test_a_page_with_figures_is_light_at_first_and_lighter_then(client: Client) -> None:
    """Compressed as WhiteNoise does; the bundle that draws is loaded once."""
    best = Submission.objects.get(model__name=f"Model {ROWS - 1}")
    for number in (3, 4):  # a spread is of three problems
        factory.make_judged(best, factory.make_problem(number, f"p{number}"), speedup=9.0)
    text = client.get("/").text
    own = re.findall(r'(?:src|data-plotly|rel="stylesheet" href)="/static/([^"]+)"', text)
    assert {Path(name).name for name in own} >= {"plotly-cartesian.min.js", "site.css", "site.js"}
    kept = sum(len(brotli.compress((STATIC / name).read_bytes())) for name in own)
    figures = [text, *(client.get(name).text for name in re.findall('data-figure="([^"]+)"', text))]
    assert len(figures) >= 5
    each_time = sum(len(gzip.compress(one.encode())) for one in figures)
    assert each_time <= BYTES_OF_A_NEXT_ONE
    assert kept + each_time <= BYTES_OF_A_FIRST_FIGURE


def test_serving_pages_loads_no_library_of_the_judge_or_of_commands(tmp_path: Path) -> None:
    state = {
        "PKB_STATE_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "DJANGO_SETTINGS_MODULE": "leaderboard.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", SERVE],
        cwd=settings.BASE_DIR,
        env={**os.environ, **state},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "leaderboard.board_pages.board" in loaded
    assert not loaded & {"torch", "numpy", "pandas", "plotly", "pyarrow"}
