"""A backup is made, everything is changed, and it is brought back: on each kind of database."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from leaderboard.models import DataVersion, LanguageModel, Problem, Run
from leaderboard.operations import backup
from leaderboard.publishing import snapshots
from tests.leaderboard import factory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.server]


@pytest.fixture
def kept(tmp_path: Path, settings: Any, problem: Problem) -> Path:
    """A backup of a site with one result and one snapshot."""
    settings.STATE_DIR = tmp_path / "state"
    run = factory.make_run(factory.make_kernel(factory.make_submission("First"), problem))
    factory.finish(run, factory.make_report(run))
    call_command("make_snapshot", "first", verbosity=0)
    call_command("backup", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_what_was_backed_up_comes_back(kept: Path, client: Client) -> None:
    before = client.get("/leaderboard.json").json()
    run, version = Run.objects.get(), DataVersion.objects.current()
    LanguageModel.objects.update(name="Changed")
    factory.make_judged(factory.make_submission("Second"), Problem.objects.get())
    (snapshots.root() / "first" / "MANIFEST.json").write_text("{}")
    with pytest.raises(CommandError, match="--replace"):
        call_command("restore", str(kept))
    assert LanguageModel.objects.count() == 2
    call_command("restore", str(kept), "--replace")
    assert client.get("/leaderboard.json").json() == before
    assert (Run.objects.get(), DataVersion.objects.current()) == (run, version)
    assert Run.objects.get().report == run.report
    assert json.loads((snapshots.root() / "first" / "MANIFEST.json").read_text())["tag"] == "first"
    factory.make_judged(factory.make_submission("Third"), Problem.objects.get())
    assert Run.objects.count() == 2


def test_tables_of_a_newer_release_do_not_stand_in_the_way(kept: Path) -> None:
    """An upgrade made them, and the site goes back to the release before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE newer (id integer PRIMARY KEY,"
            " submission_id bigint REFERENCES leaderboard_submission (id))"
        )
        cursor.execute("INSERT INTO newer SELECT 1, id FROM leaderboard_submission")
    LanguageModel.objects.update(name="Changed")
    call_command("restore", str(kept), "--replace")
    assert LanguageModel.objects.get().name == "First"
    assert "newer" not in connection.introspection.table_names()


def test_a_backup_names_secrets_and_holds_none(kept: Path, settings: Any) -> None:
    manifest = json.loads((kept / backup.MANIFEST).read_text())
    assert {"SECRET_KEY", "DATABASE_URL"} <= set(manifest["secrets_to_keep_elsewhere"])
    assert settings.SECRET_KEY.encode() not in b"".join(
        path.read_bytes() for path in kept.rglob("*") if path.is_file()
    )
    assert kept.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="exists"):
        call_command("backup", str(kept))


def test_a_backup_that_is_damaged_or_newer_changes_nothing(kept: Path) -> None:
    manifest = json.loads((kept / backup.MANIFEST).read_text())
    newer = {**manifest, "migrations": [*manifest["migrations"], "leaderboard/9999_x"]}
    other = {**manifest, "database": "oracle"}
    for changed, reason in ((newer, "newer release"), (other, "is of oracle")):
        (kept / backup.MANIFEST).write_text(json.dumps(changed))
        with pytest.raises(CommandError, match=reason):
            call_command("restore", str(kept), "--replace")
    (kept / backup.MANIFEST).write_text(json.dumps(manifest))
    with (kept / backup.DUMPS[connection.vendor]).open("ab") as file:
        file.write(b"x")
    with pytest.raises(CommandError, match="damaged"):
        call_command("restore", str(kept), "--replace")
    with pytest.raises(CommandError, match="not a backup"):
        call_command("restore", str(kept.parent), "--replace")
    assert LanguageModel.objects.get().name == "First"


def test_the_newest_backups_are_kept(kept: Path, settings: Any) -> None:
    folder = kept.parent
    (folder / "notes").mkdir()
    for number in (1, 2, 3):
        call_command("backup", str(folder / f"older-{number}"))
        manifest = folder / f"older-{number}" / backup.MANIFEST
        made = {**json.loads(manifest.read_text()), "made_at": f"2001-01-0{number}T00:00:00+00:00"}
        manifest.write_text(json.dumps(made))
    call_command("backup", str(folder / "newest"), "--keep", "3")
    left = {path.name for path in folder.iterdir() if path.is_dir()}
    assert left == {"newest", "kept", "older-3", "notes", "state"}
    made_at, where = backup.last()
    assert time.time() - made_at < 600
    assert where == folder.resolve()


def test_a_backup_that_fails_leaves_nothing_and_is_logged(
    kept: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: Path) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(backup, "_dump", full)
    with pytest.raises(CommandError, match="No space left"):
        call_command("backup", str(kept.parent / "next"))
    assert not list(kept.parent.glob("next*"))
    assert "failed: No space left" in caplog.text
