"""What problems are of: parts of models, kinds of parallelism, codebases."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.test import Client

from leaderboard.board_pages.catalogue_figures import OTHERS

pytestmark = pytest.mark.django_db


def test_every_problem_has_a_part_and_a_codebase_is_whole(client: Client) -> None:
    call_command("sync_problems", verbosity=0)
    _, *rows = client.get("/figures/problem-map.csv").content.decode().splitlines()
    counts = {row.partition(",")[0]: sum(map(int, row.split(",")[1:])) for row in rows}
    assert sum(counts.values()) == 87
    assert OTHERS not in counts
    _, *rows = client.get("/figures/sources.csv").content.decode().splitlines()
    assert rows[0] == "togethercomputer/xorl,0,14"
    assert sum(int(row.split(",")[2]) for row in rows) == 87
    page = client.get("/categories").content.decode()
    assert '"/figures/problem-map.json"' in page
    assert '"/figures/sources.json"' in page
