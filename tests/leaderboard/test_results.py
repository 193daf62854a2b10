"""`pkb.results`: a snapshot as frames, and nothing else for one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluator.client.failures import Misused, NoAnswer
from evaluator.client.results import results
from leaderboard.models import Run
from leaderboard.publishing import snapshots

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def snapshot(judged: Run, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a snapshot of one result; the client's cache is this test's."""
    settings.STATE_DIR = tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    call_command("make_snapshot", "2026-11", verbosity=0)
    return snapshots.folder("2026-11")


def test_the_newest_snapshot_of_a_site_becomes_frames(
    snapshot: Path, judged: Run, live_server: Any
) -> None:
    found = results(live_server.url)
    assert found.tag == "2026-11"
    assert {"runs", "problems", "submissions", "claims"} <= set(found)
    assert list(found.runs.speedup) == [judged.speedup]
    assert bool(found["runs"].counts.all())
    shutil.rmtree(snapshot)
    with pytest.raises(KeyError, match="there is no table secrets: there are"):
        found["secrets"]


def test_a_folder_is_read_alike_and_what_differs_is_refused(snapshot: Path, judged: Run) -> None:
    assert list(results(snapshot).runs.speedup) == [judged.speedup]
    named = snapshot / "runs.parquet"
    named.chmod(0o600)
    named.write_bytes((snapshot / "problems.parquet").read_bytes())
    with pytest.raises(NoAnswer, match="other bytes"):
        results(snapshot)["runs"]


def test_a_manifest_leads_to_no_other_file(snapshot: Path) -> None:
    manifest = snapshot / "MANIFEST.json"
    data = json.loads(manifest.read_text())
    data["files"] = [{"name": "../../db.parquet", "sha256": "0" * 64}]
    manifest.chmod(0o600)
    manifest.write_text(json.dumps(data))
    assert list(results(snapshot)) == []
    data["files"] = [{"name": "runs.parquet", "sha256": "../../../token"}]
    manifest.write_text(json.dumps(data))
    with pytest.raises(NoAnswer, match="no SHA-256"):
        results(snapshot)


def test_a_place_without_a_snapshot_says_so(live_server: Any, tmp_path: Path) -> None:
    with pytest.raises(Misused, match="no snapshot yet"):
        results(live_server.url)
    with pytest.raises(Misused, match="is no snapshot"):
        results(tmp_path)
