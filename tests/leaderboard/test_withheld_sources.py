"""Sources that are not ours to show: who has them is said, and an operator can fill them in."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from leaderboard.models import Kernel, Problem, Run, Source
from leaderboard.submissions import rejudging
from tests.leaderboard import factory, gpu_report
from tests.leaderboard.test_import_reports import _load, line_of

Line = dict[str, Any]
PATH = "solutions_cuda/1_allreduce_cuda.py"
COMMIT = "c" * 40


def _withheld(problem: Problem, *, commit: str = COMMIT, **changes: Any) -> Line:
    line = line_of(problem)
    origin = {
        "digest": hashlib.sha256(line["source"].encode()).hexdigest(),
        "size_bytes": len(line["source"]),
        "repository": "github.com/someone/kernels",
        "commit": commit,
        "path": PATH,
        **changes,
    }
    return {**line, "source": None, "origin": origin}


def _store(folder: Path, line: Line) -> str:
    path = folder / "some.jsonl"
    path.write_text(json.dumps(line) + "\n")
    return _load(path)


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def kernel(problem: Problem, tmp_path: Path) -> Kernel:
    assert "1 submissions, 1 runs" in _store(tmp_path, _withheld(problem))
    return Kernel.objects.get()


def test_pages_and_api_say_where_the_source_is(kernel: Kernel, client: Client) -> None:
    page = client.get(f"/kernels/{kernel.source_id}").content.decode()
    assert "The source is not held here" in page
    assert f"https://github.com/someone/kernels/blob/{COMMIT}/{PATH}" in page
    assert "Compare with" not in page
    told = client.get(f"/api/v1/kernels/{kernel.source_id}").json()
    place = {"repository": "github.com/someone/kernels", "commit": COMMIT, "path": PATH}
    assert told["source"] is None
    assert {name: told[name] for name in place} == place
    data = client.get(f"/kernels/{kernel.source_id}.json").json()
    assert data["source"] is None
    assert data["elsewhere"]["path"] == PATH


def test_no_line_of_a_source_that_is_not_held_is_linked(problem: Problem, client: Client) -> None:
    there = {"repository": "github.com/someone/kernels", "commit": COMMIT, "path": PATH}
    source = Source.objects.create(digest="a" * 64, size_bytes=9, **there)
    kernel = Kernel.objects.create(
        submission=factory.make_submission(), problem=problem, backend="cuda", source=source
    )
    found = factory.make_run(kernel, world_size=4, device="cuda", dtype="bfloat16", size="standard")
    factory.finish(found, gpu_report.make_gpu_report(found))
    for address in (f"/kernels/{kernel.source_id}", f"/runs/{found.id}"):
        html = client.get(address).content.decode()
        assert "line 6: dist.all_reduce(" in html
        assert "#L-" not in html


def test_a_bundle_says_what_to_fetch(kernel: Kernel, client: Client) -> None:
    body = client.get(f"/kernels/{kernel.source_id}/bundle.zip").content
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        names = {Path(name).name: name for name in archive.namelist()}
        assert "kernel.py" not in names
        said = archive.read(names["README.md"]).decode()
    assert f"{PATH.replace('_', chr(92) + '_')} at {COMMIT}" in said


def test_it_is_compared_with_nothing(kernel: Kernel, client: Client) -> None:
    other = factory.make_kernel(factory.make_submission(), kernel.problem, source="x = 1\n")
    address = f"/compare?kernels={other.source_id},{kernel.source_id}"
    assert "lines are not compared" in client.get(address).content.decode()
    refused = client.get(f"/kernels/{other.source_id}?diff={kernel.source_id}")
    assert refused.status_code == 400


def test_it_cannot_be_judged_again(kernel: Kernel) -> None:
    chosen = rejudging.selection(stale=False, problem="1", waits=True)
    assert rejudging.planned(chosen).left_out == {rejudging.NOT_HELD: [1]}


@pytest.fixture
def clone(problem: Problem, tmp_path: Path) -> tuple[Path, str]:
    """A repository that has the source at PATH, and the name of its commit."""
    folder = tmp_path / "clone"
    (folder / PATH).parent.mkdir(parents=True)
    (folder / PATH).write_text(line_of(problem)["source"])
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "a")
    return folder, _git(folder, "rev-parse", "HEAD")


def _fill(folder: Path) -> str:
    out = StringIO()
    call_command("import_submission", f"--from-git={folder}", stdout=out)
    return out.getvalue()


def test_a_clone_fills_them_in(problem: Problem, clone: tuple[Path, str], tmp_path: Path) -> None:
    folder, commit = clone
    _store(tmp_path, _withheld(problem, commit=commit))
    assert "1 sources filled in, 0 left out" in _fill(folder)
    assert Source.objects.get().text == line_of(problem)["source"]
    assert "0 sources filled in, 0 left out" in _fill(folder)
    chosen = rejudging.selection(stale=False, problem="1", waits=True)
    assert len(rejudging.planned(chosen).ready) == 1


def test_the_commit_that_is_named_is_read_and_not_the_newest(
    problem: Problem, clone: tuple[Path, str], tmp_path: Path
) -> None:
    folder, commit = clone
    _store(tmp_path, _withheld(problem, commit=commit))
    (folder / PATH).write_text("x = 1\n")
    _git(folder, "commit", "-q", "-a", "-m", "b")
    assert "1 sources filled in" in _fill(folder)


@pytest.mark.parametrize("where", ["other text", "no such commit", "no repository"])
def test_what_a_clone_lacks_is_named(
    problem: Problem, clone: tuple[Path, str], tmp_path: Path, where: str
) -> None:
    folder, commit = clone
    line = _withheld(problem, commit=COMMIT if where == "no such commit" else commit)
    if where == "other text":
        digest = "d" * 64
        line["origin"]["digest"] = line["report"]["kernel_digest"] = digest
    _store(tmp_path, line)
    said = _fill(tmp_path if where == "no repository" else folder)
    assert f"left out: {PATH}: " in said
    assert "0 sources filled in, 1 left out" in said
    assert Source.objects.get().text is None


def test_whoever_hands_the_text_in_fills_it_in(kernel: Kernel) -> None:
    text = line_of(kernel.problem)["source"]
    Source.objects.keep(text)
    assert Source.objects.get(pk=kernel.source_id).text == text


def test_a_text_that_is_held_never_changes(problem: Problem) -> None:
    source = Source.objects.keep("x = 1\n")[0]
    with transaction.atomic(), pytest.raises(IntegrityError):
        Source.objects.filter(pk=source.pk).update(size_bytes=1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": "D" * 64}, "SHA-256"),
        ({"commit": "main"}, "commit"),
        ({"path": ""}, "repository and path"),
        ({"path": "x" * 501}, "path"),
        ({"size_bytes": -1}, "size"),
        ({"digest": "e" * 64}, "kernel"),
    ],
)
def test_an_origin_that_is_wrong_is_refused(
    problem: Problem, tmp_path: Path, change: Line, reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        _store(tmp_path, _withheld(problem, **change))
    assert not Run.objects.exists()


def test_a_line_has_a_source_or_its_origin(problem: Problem, tmp_path: Path) -> None:
    line = _withheld(problem)
    for wrong in ({**line, "origin": None}, {**line, "source": "x = 1\n"}):
        with pytest.raises(CommandError, match="either source or origin"):
            _store(tmp_path, wrong)


@pytest.mark.parametrize("words", [(), ("--harness=human",), ("--from-git=/no/such",)])
def test_a_command_without_its_folder_says_so(db: None, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="folder"):
        call_command("import_submission", *words)
