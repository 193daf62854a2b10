"""Frozen data: what is in it, what never is, and that it stays as it is."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import shutil
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from leaderboard.models import LanguageModel, Run, Snapshot, Submission, Visibility
from leaderboard.publishing import snapshot_files, snapshot_tables, snapshots
from leaderboard.publishing.training_set import CARD
from tests.leaderboard import factory
from tests.leaderboard.frozen import freeze, make_board, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.server]
HOSTILE = '"><script>alert(1)</script>\u202e=cmd|\n\\'
ENDS = ("jsonl.gz", "parquet")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "data.md"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, settings: Any) -> None:
    settings.STATE_DIR = tmp_path


@pytest.fixture
def board() -> dict[str, Submission]:
    made = make_board()
    Submission.objects.filter(pk=made["fine"].pk).update(licence="MIT")
    return made


def _everything(folder: Path) -> str:
    packed = [gzip.decompress(path.read_bytes()).decode() for path in folder.glob("*.gz")]
    frames = [pd.read_parquet(path).to_csv() for path in folder.glob("*.parquet")]
    return "\n".join([*packed, *frames, (folder / "MANIFEST.json").read_text()])


def test_it_holds_every_table_twice_and_their_hashes(board: dict[str, Submission]) -> None:
    folder = freeze()
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    names = [f"{table.name}.{end}" for table in snapshot_tables.TABLES for end in ENDS] + [CARD]
    assert [file["name"] for file in manifest["files"]] == names
    assert {path.name for path in folder.iterdir()} == {*names, "MANIFEST.json"}
    for file in manifest["files"]:
        if file["name"] != CARD:
            assert file["rows"] == len(rows_of(folder, file["name"].partition(".")[0]))
        data = (folder / file["name"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    row = Snapshot.objects.get()
    assert {file["name"] for file in row.files} == {*names, "MANIFEST.json"}
    assert (row.data_version, row.judge_version) == (
        manifest["data_version"],
        manifest["judge_version"],
    )


def test_both_forms_of_a_table_say_the_same(board: dict[str, Submission]) -> None:
    folder = freeze()
    for table in snapshot_tables.TABLES:
        rows = rows_of(folder, table.name)
        frame = pd.read_parquet(folder / f"{table.name}.parquet")
        assert rows, table.name
        assert list(frame.columns) == list(rows[0]) == list(table.kinds)
        for row, typed in zip(rows, frame.to_dict("records"), strict=True):
            for name, kind in table.kinds.items():
                assert _same(kind, row[name], typed[name]), (name, row[name], typed[name])


def _same(kind: str, plain: Any, typed: Any) -> bool:
    if kind in ("texts", "ints"):
        return bool(list(typed) == plain)
    if plain is None:
        return bool(pd.isna(typed))
    if kind == "json":
        return bool(json.loads(typed) == plain)
    if kind == "time":
        return bool(pd.Timestamp(plain) == typed)
    return bool(typed == plain)


def test_what_is_not_public_is_nowhere_in_it(board: dict[str, Submission]) -> None:
    folder = freeze()
    text = _everything(folder)
    hidden = Submission.objects.exclude(visibility=Visibility.PUBLIC)
    for run in Run.objects.filter(kernel__submission__in=hidden):
        assert str(run.pk) not in text
        assert run.kernel.source_id not in text
    assert "Secret" not in text
    for model in LanguageModel.objects.filter(submissions__in=hidden):
        assert model.slug not in text
    kept = {row["submission"] for row in rows_of(folder, "submissions")}
    assert kept == {board[name].pk for name in ("fine", "disputed", "invalidated")}
    for table in ("kernels", "runs", "summaries", "places"):
        assert {row["submission"] for row in rows_of(folder, table)} <= kept


def test_neither_owners_nor_logs_nor_leases_are_in_it(board: dict[str, Submission]) -> None:
    Submission.objects.filter(pk=board["fine"].pk).update(owner=factory.make_user("ada-lovelace"))
    text = _everything(freeze())
    assert "ada-lovelace" not in text
    assert "compiled\\n" not in text
    for column in ("lease", '"token', 'token"', "logs", "idempotency"):
        assert column not in text


def test_what_staff_took_out_is_marked_and_holds_no_place(board: dict[str, Submission]) -> None:
    folder = freeze()
    standing = {row["submission"]: row for row in rows_of(folder, "submissions")}
    for name in ("disputed", "invalidated"):
        row = standing[board[name].pk]
        assert (row["moderation"], row["ranked"]) == (name, False)
        assert row["moderation_reason"] == "It reads the answer."
    assert standing[board["fine"].pk]["ranked"] is True
    ranked = {row["submission"]: row["ranked"] for row in rows_of(folder, "summaries")}
    assert ranked == {board[n].pk: n == "fine" for n in ("fine", "disputed", "invalidated")}
    places = [(row["submission"], row["place"]) for row in rows_of(folder, "places")]
    assert places == [(board["fine"].pk, "1")]


def test_places_and_summaries_tell_a_setting_in_the_same_columns(
    board: dict[str, Submission],
) -> None:
    folder = freeze()
    (place,) = rows_of(folder, "places")
    summary = next(r for r in rows_of(folder, "summaries") if r["submission"] == board["fine"].pk)
    assert {name: place[name] for name in snapshot_tables.SETTING} == {
        name: summary[name] for name in snapshot_tables.SETTING
    }
    assert place["placement"] == "full"


def test_a_baseline_is_marked_and_holds_no_place(board: dict[str, Submission]) -> None:
    LanguageModel.objects.filter(submissions=board["fine"]).update(is_baseline=True)
    other = factory.make_submission("Other")
    factory.make_judged(other, factory.make_problem(), speedup=1.5)
    places = {row["submission"]: row for row in rows_of(freeze(), "places")}
    assert {pk: (row["baseline"], row["place"]) for pk, row in places.items()} == {
        board["fine"].pk: (True, None),
        other.pk: (False, "1"),
    }


def test_only_finished_runs_are_in_it_and_say_whether_they_count(
    board: dict[str, Submission],
) -> None:
    stale = factory.make_judged(board["fine"], factory.make_problem(2, "gemm"))
    stale.kernel.problem.digest = "0" * 64
    stale.kernel.problem.save()
    runs = {row["run"]: row for row in rows_of(freeze(), "runs")}
    public = Run.objects.filter(kernel__submission__visibility=Visibility.PUBLIC)
    assert set(runs) == {str(run.pk) for run in public.exclude(status="queued")}
    assert {run for run, row in runs.items() if not row["counts"]} == {str(stale.pk)}


def test_a_report_keeps_its_bursts(board: dict[str, Submission]) -> None:
    reports = rows_of(freeze(), "reports")
    timed = [row["report"]["timing"] for row in reports if row["report"]["timing"]]
    assert all(len(timing["kernel_bursts_us"]) == 8 for timing in timed)
    assert not any("logs" in row["report"] for row in reports)


def test_hostile_names_stay_text(board: dict[str, Submission]) -> None:
    LanguageModel.objects.filter(submissions=board["fine"]).update(name=HOSTILE[:80])
    Submission.objects.filter(pk=board["fine"].pk).update(notes=HOSTILE)
    folder = freeze()
    assert HOSTILE in [row["name"] for row in rows_of(folder, "models")]
    assert HOSTILE in list(pd.read_parquet(folder / "submissions.parquet").notes)
    lines = gzip.decompress((folder / "models.jsonl.gz").read_bytes())
    assert lines.isascii()
    assert lines.count(b"\n") == len(rows_of(folder, "models"))


def test_what_is_no_number_becomes_none() -> None:
    table = snapshot_tables.SnapshotTable(
        name="t", kinds={"a": "float", "b": "json"}, rows=lambda: iter(())
    )
    row = snapshot_files._plain(table, (math.nan, {"c": [math.inf, 1.0]}))
    assert row == {"a": None, "b": {"c": [None, 1.0]}}


def test_the_same_data_make_the_same_bytes(board: dict[str, Submission], tmp_path: Path) -> None:
    folder = freeze()
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    Snapshot.objects.all().delete()
    shutil.move(folder, tmp_path / "moved")
    again = {path.name: path.read_bytes() for path in freeze().iterdir()}
    assert again == first
    other = {path.name: path.read_bytes() for path in freeze("other").iterdir()}
    assert {name for name in first if first[name] != other[name]} == {"MANIFEST.json"}


def test_a_tag_is_given_once(board: dict[str, Submission]) -> None:
    before = (freeze() / "MANIFEST.json").read_bytes()
    with pytest.raises(CommandError, match="stays as it is"):
        freeze()
    Snapshot.objects.all().delete()
    with pytest.raises(CommandError, match="stays as it is"):
        freeze()
    assert (snapshots.folder("2026-11") / "MANIFEST.json").read_bytes() == before


@pytest.mark.parametrize("tag", ["", "../x", "a/b", ".hidden", "-a", "a b", "x" * 65, "é"])
def test_a_tag_is_a_plain_word(tag: str) -> None:
    with pytest.raises(CommandError, match="A tag is"):
        freeze(f" {tag}" if tag.startswith("-") else tag)


def test_what_fails_leaves_nothing_behind(
    board: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(snapshot_files, "_described", full)
    with pytest.raises(OSError, match="no space"):
        freeze()
    assert not Snapshot.objects.exists()
    assert not list(snapshots.folder("x").parent.iterdir())


def test_an_empty_site_makes_an_empty_snapshot() -> None:
    folder = freeze()
    assert [len(rows_of(folder, table.name)) for table in snapshot_tables.TABLES] == [0] * len(
        snapshot_tables.TABLES
    )
    assert pd.read_parquet(folder / "runs.parquet").empty


@pytest.mark.parametrize("table", snapshot_tables.TABLES, ids=lambda table: table.name)
def test_every_column_is_explained(table: snapshot_tables.SnapshotTable) -> None:
    part = DOCS.read_text().partition(f"### {table.name}\n")[2].partition("\n### ")[0]
    assert part
    assert not [name for name in table.kinds if f"`{name}`" not in part]


def test_one_that_need_not_be_there_twice_is_named_by_its_day(
    board: dict[str, Submission],
) -> None:
    def freeze_if_none() -> list[str]:
        call_command("make_snapshot", "--if-none", stdout=(told := StringIO()))
        assert told.getvalue()
        return list(Snapshot.objects.values_list("tag", flat=True))

    today = datetime.now(UTC).date().isoformat()
    assert freeze_if_none() == [today]
    assert freeze_if_none() == [today]
    # A database that is made anew beside the old files: what was cited stays as it is.
    Snapshot.objects.all().delete()
    assert freeze_if_none() == [f"{today}-2"]
    assert (snapshots.folder(today) / "MANIFEST.json").exists()
