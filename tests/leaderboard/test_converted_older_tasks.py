"""A tree that `pkb convert` gave today's names keeps what tells which tasks were older."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluator.client.main import main
from leaderboard.models import Kernel, Problem, Run, Submission
from tests.leaderboard.test_superseded_tasks import (
    AT_RANDOM,
    OLDER,
    TODAYS,
    TREE,
    WHY,
    problems,  # noqa: F401  fixture
)
from tests.leaderboard.uploads import GOOD, Send, make_tar

pytestmark = pytest.mark.usefixtures("problems")

SAMPLING = "kernels/64_gnn_neighbor_sampling/attempt_1/step_01_cuda.py"
FORMAT = json.dumps({"format": "pkb-attempts/1"}).encode()
ABOUT = {"model": "GPT-5.5", "harness": "zero-shot"}


def _converted(folder: Path, *trees: tuple[str, tuple[str, ...]]) -> Path:
    """What `pkb convert` makes of trees with these kernels, one an attempt."""
    for number, (tree, names) in enumerate(trees):
        made = folder / str(number) / tree
        made.mkdir(parents=True)
        for name in names:
            (made / f"{name}_cuda.py").write_bytes(GOOD + f"# {number} {name}".encode())
    folders = [str(folder / str(number) / tree) for number, (tree, _) in enumerate(trees)]
    path = folder / "made.tar.gz"
    assert main(["convert", *folders, "-o", str(path)]) == 0
    return path


def _marked() -> set[tuple[int, int]]:
    """Problem and attempt of what was written for an older task."""
    older = Kernel.objects.exclude(older_task="")
    return set(older.values_list("problem_id", "attempt"))


def test_a_converted_tree_of_before_is_marked_and_judged(send: Send, tmp_path: Path) -> None:
    path = _converted(tmp_path, (TREE, (*OLDER, "41_ddp")))
    assert send(ABOUT, path.read_bytes()).status_code == 201
    assert _marked() == {(number, 1) for number in (26, 36, 37, 64)}
    assert Kernel.objects.get(problem=64).older_task == AT_RANDOM
    assert Run.objects.queued().count() == 5


def test_a_converted_tree_of_today_is_not(send: Send, tmp_path: Path) -> None:
    path = _converted(tmp_path, (TREE, (*TODAYS, "40_ddp")))
    assert send(ABOUT, path.read_bytes()).status_code == 201
    assert _marked() == set()


def test_each_tree_speaks_for_itself(send: Send, tmp_path: Path) -> None:
    path = _converted(tmp_path, (TREE, (*OLDER, "41_ddp")), (TREE, (*TODAYS, "40_ddp")))
    assert send({**ABOUT, "harness": "repeated"}, path.read_bytes()).status_code == 201
    assert _marked() == {(number, 1) for number in (26, 36, 37, 64)}
    assert Kernel.objects.count() == 10


def test_the_command_that_imports_a_converted_tree_says_so(tmp_path: Path) -> None:
    path = _converted(tmp_path, (TREE, ("65_gnn_neighbor_sampling", "41_ddp")))
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    for given in (path, tmp_path / "unpacked"):
        out = io.StringIO()
        call_command("import_submission", given, "--harness=zero-shot", "--model=M", stdout=out)
        assert f"problem 64: {WHY}: not counted" in out.getvalue()


def _archive(name: str, told: dict[str, Any], source: bytes = GOOD) -> bytes:
    """An archive of one kernel, with what is told of it."""
    line = {"problem": 64, "attempt": 1, "step": 1, **told}
    return make_tar(
        {name: source, "manifest.json": FORMAT, "attempts.jsonl": json.dumps(line).encode()}
    )


def test_an_archive_without_it_is_taken_as_before(send: Send) -> None:
    for told in ({}, {"converted_from": None}, {"converted_from": ""}):
        assert send(ABOUT, _archive(SAMPLING, told)).status_code == 201
    assert _marked() == set()


@pytest.mark.parametrize(
    "wrong",
    [
        *("65_gnn_neighbor_sampling_cuda.py", f"{TREE}/gnn_neighbor_sampling_cuda.py"),
        *(f"{TREE}/41_ddp_cuda.py", f"{TREE}/66_gnn_neighbor_sampling_cuda.py"),
        *(f"{TREE}/65_gnn_neighbor_sampling_triton.py", f"{TREE}/", "..", "x" * 301, "\x00", 65),
    ],
)
def test_a_name_that_it_cannot_have_had_is_refused(send: Send, wrong: object) -> None:
    answer = send(ABOUT, _archive(SAMPLING, {"converted_from": wrong}))
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "bad_attempts"
    assert "attempts.jsonl, line 1" in answer.json()["error"]["message"]
    assert not Submission.objects.exists()


def test_a_claim_takes_no_mark_away(send: Send) -> None:
    folder = f"{TREE}/65_gnn_neighbor_sampling/attempt_1"
    told = {"converted_from": f"{TREE}/64_gnn_neighbor_sampling_cuda.py"}
    archive = _archive(f"{folder}/step_01_cuda.py", told)
    assert send({"harness": "zero-shot"}, archive).status_code == 201
    assert _marked() == {(64, 1)}


def test_a_claim_marks_no_other_task(send: Send, problems: dict[int, Problem]) -> None:  # noqa: F811
    told = {"problem": 40, "converted_from": f"{TREE}/41_ddp_cuda.py"}
    archive = _archive("kernels/40_ddp/attempt_1/step_01_cuda.py", told)
    assert send(ABOUT, archive).status_code == 201
    assert _marked() == set()


def test_a_repeated_request_tells_the_same(send: Send) -> None:
    key = {"Idempotency-Key": "once"}
    told = {"converted_from": f"{TREE}/65_gnn_neighbor_sampling_cuda.py"}
    assert send(ABOUT, _archive(SAMPLING, told), **key).status_code == 201
    assert send(ABOUT, _archive(SAMPLING, told), **key).status_code == 200
    assert send(ABOUT, _archive(SAMPLING, {}), **key).status_code == 409
