"""The pages of snapshots, their files and how to cite them."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.http import FileResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.delivery import citing
from leaderboard.models import Snapshot, Submission
from leaderboard.publishing import snapshots
from tests.leaderboard.frozen import freeze, make_board

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, settings: Any) -> None:
    settings.STATE_DIR = tmp_path


@pytest.fixture
def board() -> dict[str, Submission]:
    return make_board()


def test_pages_and_twins_answer_in_one_query(board: dict[str, Submission], client: Client) -> None:
    freeze()
    row = Snapshot.objects.get()
    for address in ("/snapshots", "/snapshots/2026-11"):
        for form in ("", ".json", ".csv"):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                answer = client.get(address + form)
            assert answer.status_code == 200
            assert len(queries) == 1
            assert snapshots.manifest_digest(row)[:16] in answer.content.decode()
    names = {file["name"] for file in client.get("/snapshots/2026-11.json").json()["files"]}
    assert names == {file["name"] for file in row.files}


def test_pages_without_a_snapshot(client: Client) -> None:
    assert "No snapshot has been made yet" in client.get("/snapshots").content.decode()
    assert client.get("/snapshots.json").json() == {"snapshots": []}
    assert client.get("/snapshots/none").status_code == 404
    assert client.get("/snapshots/none/runs.parquet").status_code == 404


def test_a_file_is_streamed_and_kept_for_ever(board: dict[str, Submission], client: Client) -> None:
    folder = freeze()
    kinds = {
        "MANIFEST.json": "application/json",
        "runs.jsonl.gz": "application/gzip",
        "runs.parquet": "application/vnd.apache.parquet",
    }
    for name, kind in kinds.items():
        answer = client.get(f"/snapshots/2026-11/{name}")
        assert isinstance(answer, FileResponse)
        assert answer.getvalue() == (folder / name).read_bytes()
        assert answer["Content-Type"] == kind
        assert "Content-Encoding" not in answer
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer["Content-Length"] == str((folder / name).stat().st_size)
        assert "immutable" in answer["Cache-Control"]
        held = client.get(f"/snapshots/2026-11/{name}", headers={"If-None-Match": answer["ETag"]})
        assert (held.status_code, held.content) == (304, b"")


def test_nothing_else_is_served(board: dict[str, Submission], client: Client) -> None:
    folder = freeze()
    (folder / "secret.txt").write_text("secret")
    (folder / "runs.parquet").unlink()
    others = ("secret.txt", "..", "../2026-11/models.parquet", "%2e%2e", "runs.parquet")
    for name in others:
        assert client.get(f"/snapshots/2026-11/{name}").status_code == 404, name
    assert client.get("/snapshots/2026-11/").headers["Location"] == "/snapshots/2026-11"


def test_a_citation_names_tag_date_and_hash(client: Client) -> None:
    freeze("v1_final")
    row = Snapshot.objects.get()
    made = citing.of_snapshot(
        row, snapshots.manifest_digest(row), "https://example.org/snapshots/v1_final"
    )
    for part in ("v1", row.created_at.date().isoformat(), snapshots.manifest_digest(row)):
        assert part in made["text"]
    entry = made["bibtex"]
    assert entry.count("{") == entry.count("}")
    assert r"snapshot v1\_final}" in entry
    assert f"year   = {{{row.created_at.year}}}" in entry
    day = row.created_at.date().isoformat()
    named_by_day = Snapshot(tag=day, created_at=row.created_at, files=row.files)
    assert citing.of_snapshot(named_by_day, "0" * 64, "https://example.org")["text"].count(day) == 1
    page = client.get("/snapshots/v1_final").content.decode()
    assert "sha256sum -c" in page
    for file in row.files:
        assert file["sha256"] in page, file["name"]


def test_a_citation_of_a_live_page_says_when() -> None:
    made = citing.live("https://example.org/?sort=k", date(2026, 11, 21))
    assert "Results as of 2026-11-21" in made["text"]
    assert re.search(r"url +=.*\{https://example.org/\?sort=k\},", made["bibtex"])
