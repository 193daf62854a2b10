"""An archive of attempts says its model and its harness itself."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from evaluator.client import sources
from evaluator.client.packing import packed
from evaluator.client.sources import folder_members, manifest_of
from evaluator.client.submitting import _told_by
from tests.evaluator.client.conftest import Pkb
from tests.evaluator.client.scripted import Answer, site

TOLD = {"format": "pkb-attempts/1", "model": "gpt-5.5", "harness": "one-shot"}


def _zip(path: Path, name: str, text: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, text)
    return path


def _tar(path: Path, name: str, text: bytes) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return path


@pytest.mark.parametrize("name", ["manifest.json", "out/manifest.json", "./manifest.json"])
def test_it_is_read_from_folders_and_archives(name: str, tmp_path: Path) -> None:
    text = json.dumps(TOLD).encode()
    assert manifest_of(_zip(tmp_path / "a.zip", name, text).read_bytes()) == TOLD
    assert manifest_of(_tar(tmp_path / "a.tar.gz", name, text).read_bytes()) == TOLD
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "manifest.json").write_bytes(text)
    (folder / "1_allreduce_cuda.py").write_bytes(b"")
    members = folder_members(folder)
    assert manifest_of(packed({str(one.path): one.data for one in members})) == TOLD
    assert _told_by(TOLD) == {"model": "gpt-5.5", "harness": "zero-shot"}


@pytest.mark.parametrize("text", [b"", b"[1]", b"{", b"\xff", b"[" * 50_000, b" " * (65 << 10)])
def test_what_is_none_says_nothing(text: bytes, tmp_path: Path) -> None:
    assert manifest_of(_zip(tmp_path / "a.zip", "manifest.json", text).read_bytes()) == {}
    deep = _tar(tmp_path / "a.tgz", "a/b/manifest.json", json.dumps(TOLD).encode())
    assert manifest_of(deep.read_bytes()) == {}
    assert manifest_of(text) == {}
    assert _told_by({"model": 5, "harness": None}) == {}


def test_what_it_says_is_noted_and_a_flag_goes_first(
    pkb: Pkb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PKB_TOKEN", "t")
    told = {**TOLD, "sampling": {"temperature": 0.5, "seed": None}}
    path = _zip(tmp_path / "a.zip", "manifest.json", json.dumps(told).encode())
    accepted = Answer(value={"submission": 1, "url": "u", "runs": []}, status=201)
    with site(accepted) as asked:
        assert pkb("submit", path, "--model", "Mine", "--site", asked.url) == 0
    noted = capsys.readouterr().err
    assert noted == "from the manifest: harness zero-shot; sampling temperature 0.5\n"


def test_an_archive_that_no_site_takes_is_not_sent(
    pkb: Pkb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PKB_TOKEN", "t")
    monkeypatch.setattr(sources, "MAX_UPLOAD_BYTES", 100)
    path = _zip(tmp_path / "a.zip", "manifest.json", json.dumps(TOLD).encode())
    assert pkb("submit", path, "--site", "http://127.0.0.1:9") == 2
    assert "Leave out transcripts/" in capsys.readouterr().err
