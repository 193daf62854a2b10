"""A site of 0.1 is carried over whole or refused, and rows that pages read are of this format."""

from __future__ import annotations

import ast
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.models import (
    AuditEntry,
    DataVersion,
    Kernel,
    LeaderboardRow,
    Problem,
    ProblemAggregate,
    Run,
    Submission,
    Summary,
    summaries,
)
from leaderboard.models.catalogue import SUMMARY_FORMAT, OutdatedSummaryError
from leaderboard.operations import backup, older_database, readiness
from leaderboard.read_model import summary_check
from tests.leaderboard import factory

pytestmark = pytest.mark.server

FOLDER = Path(summaries.__file__).parent.parent / "migrations"
# `older_site.py` says how 0.1 made it.
OLDER_SITE = Path(__file__).with_name("site_of_0_1.tar.xz")
WORDS = "export with 0.1, import with 0.2"
# `migrate` may recompute these, where this release reads another format.
SUMMED_UP = {f"leaderboard.{name}" for name in ("summary", "leaderboardrow", "problemaggregate")}
# Tables that 0.1 did not have.
NEWER = ("judgement", "traininggroup", "upload", "uploadpart")
SUMMED_UP |= {"leaderboard.dataversion"}


@pytest.fixture
def older_site(tmp_path: Path, settings: Any, transactional_db: None) -> Iterator[Path]:
    """A folder with the backup and the rows of a site of 0.1. The database ends as it began."""
    settings.STATE_DIR = tmp_path / "state"
    backup.back_up(tmp_path / "before")
    with tarfile.open(OLDER_SITE) as archive:
        archive.extractall(tmp_path, filter="data")
    yield tmp_path / connection.vendor
    backup.restore(tmp_path / "before", replace=True)


def test_a_site_of_0_1_is_carried_over(older_site: Path, client: Client) -> None:
    call_command("restore", str(older_site / "backup"))
    call_command("migrate", verbosity=0)
    stored, now = json.loads((older_site / "rows.json").read_text()), io.StringIO()
    call_command("dumpdata", stdout=now)
    found = {(row["model"], row["pk"]): row["fields"] for row in json.loads(now.getvalue())}
    assert len({row["model"] for row in stored if row["model"].startswith("leaderboard.")}) > 25
    for row in stored:
        if row["model"] not in SUMMED_UP:
            values = found[row["model"], row["pk"]]
            assert {name: values[name] for name in row["fields"]} == row["fields"]
    kept = {row["model"] for row in stored} - SUMMED_UP
    newer = len(NEWER) * (1 + 4)  # a content type and its permissions
    before = sum(row["model"] in kept for row in stored)
    assert before + newer == sum(model in kept for model, _ in found)
    assert summary_check.differences() == []

    assert "Open Model" in client.get("/").text
    seen = Submission.objects.get(model__name="Open Model", visibility="public")
    page = client.get(seen.get_absolute_url()).text
    assert "Über zwei." in page
    assert client.get(Run.objects.get(ruling__isnull=False).get_absolute_url()).status_code == 200
    for rows in (Run.objects.filter(status="done"), Kernel.objects, AuditEntry.objects):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            rows.update(id=1)
    factory.make_judged(seen, Problem.objects.get(number=2))
    assert readiness.is_schema_current()


def test_a_database_that_0_1_left_behind_is_refused(
    older_site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_command("restore", str(older_site / "backup"))
    recorded = MigrationRecorder(connection).migration_qs
    recorded.filter(name=older_database.LAST).delete()
    before = set(recorded.values_list("app", "name"))
    with pytest.raises(CommandError, match=WORDS):
        call_command("migrate", verbosity=0)
    assert set(recorded.values_list("app", "name")) == before
    monkeypatch.setattr(readiness, "_found_current", set())
    assert not readiness.is_schema_current()


def test_a_backup_that_0_1_made_before_its_last_migration_is_refused(older_site: Path) -> None:
    path = older_site / "backup" / backup.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["migrations"].remove(f"leaderboard/{older_database.LAST}")
    path.write_text(json.dumps(manifest))
    with pytest.raises(CommandError, match=WORDS):
        call_command("restore", str(older_site / "backup"))
    assert not Submission.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_migrate_recomputes_once_what_another_release_summed_up(problem: Problem) -> None:
    fast, slow = factory.make_submission("Fast", k=2), factory.make_submission("Slow")
    factory.make_judged(fast, problem, speedup=2.0)
    factory.make_judged(slow, problem, Verdict.TIMEOUT)
    factory.make_judged(slow, factory.make_problem(2, "p2", "data"))
    expected = _stored()
    Summary.objects.all().delete()
    DataVersion.objects.outdate_summary()
    version = DataVersion.objects.values_list("number", flat=True).get()
    for _ in range(2):
        call_command("migrate", verbosity=0)
        assert _stored() == expected
        assert DataVersion.objects.current() == version + 1


@pytest.mark.parametrize("form", ["/", "/matrix", "/problems.json", "/leaderboard.csv"])
def test_rows_in_another_format_are_refused_until_they_are_made_anew(
    form: str, run: Run, client: Client
) -> None:
    factory.finish(run, factory.make_report(run))
    before = client.get(form).content
    for found in (SUMMARY_FORMAT - 1, SUMMARY_FORMAT + 1):
        DataVersion.objects.update(summary_format=found)
        with pytest.raises(OutdatedSummaryError, match=f"format {found}.*rebuild_summary"):
            client.get(form)
    call_command("rebuild_summary", verbosity=0)
    assert client.get(form).content == before


@pytest.mark.django_db
def test_a_summary_that_a_catalogue_left_unmade_is_made_by_the_next_call(client: Client) -> None:
    call_command("sync_problems", verbosity=0)
    DataVersion.objects.outdate_summary()
    assert client.get("/").status_code == 200
    call_command("sync_problems", verbosity=0)
    assert DataVersion.objects.get().summary_format == SUMMARY_FORMAT


def test_migrations_use_no_code_that_may_change() -> None:
    for path in sorted(FOLDER.glob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = [one.module or "" for one in nodes if isinstance(one, ast.ImportFrom)]
        names += [name.name for one in nodes if isinstance(one, ast.Import) for name in one.names]
        ours = {name for name in names if name.split(".")[0] in ("leaderboard", "evaluator")}
        assert ours <= {"leaderboard.migrations._append_only"}, path.name


def _stored() -> dict[str, list[Any]]:
    kinds = (Summary, LeaderboardRow, ProblemAggregate)
    made = {
        kind.__name__: [
            {name: value for name, value in row.items() if name != "id"}
            for row in kind._default_manager.values()
        ]
        for kind in kinds
    }
    return {"runs": [dict(row) for row in Run.objects.order_by("created_at").values()], **made}
