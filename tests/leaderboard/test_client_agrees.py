"""What the client says without the site is what the site would do."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from django.conf import settings

from evaluator.client import arguments, catalogue, pkb_folders, sources
from evaluator.client.failures import Misused
from evaluator.client.main import main
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Harness, Problem
from leaderboard.models.choices import BACKENDS
from leaderboard.submissions.archives import (
    MAX_SOURCE_BYTES,
    Member,
)
from leaderboard.submissions.sources import checked_problem, from_member
from leaderboard.submissions.target_selection import CPU_BACKENDS
from tests.leaderboard.uploads import Send

TREE = "solutions_cuda_bf16_h100_8_openai_gpt-5.5"


@pytest.mark.parametrize(
    "path",
    [
        *("1_allreduce_cuda.py", "allreduce_triton.py", "001_allreduce_pk.py", "allreduce.py"),
        *("1_allreduce_rust.py", "Allreduce_cuda.py", "notes.py", "step_1_cuda.py"),
        *(
            "1_allreduce/attempt_2/step_03_cuda.py",
            "a/b/13_gemm_allreduce_cpp.py",
            "12345_x_cpp.py",
        ),
        *(f"{TREE}/1_allreduce.py", f"{TREE}/41_ddp_cuda.py", "solutions_triton/1_allreduce.py"),
    ],
)
def test_both_read_the_same_from_a_path(path: str) -> None:
    said = sources.named(PurePosixPath(path))
    mine = said and said.backend and (said.number or said.slug, said.backend)
    try:
        found = from_member(Member(path=PurePosixPath(path), content=b""), 1)
    except RequestError:
        assert not mine
    else:
        assert mine == (found.problem, found.backend)


def test_both_know_the_older_names_of_problems() -> None:
    known = {
        name: Problem(number=each.number, slug=each.slug)
        for name, each in catalogue.problems().items()
    }
    names = {
        f"{each.number + off}_{each.slug}"
        for each in catalogue.problems().values()
        for off in (-1, 0, 1)
    }
    met = [name for name in sorted(names | set(pkb_folders._RENAMED)) if _is_met(name, known)]
    assert {*pkb_folders._RENAMED, "41_ddp", "40_ddp"} <= set(met)
    assert len(met) > 130


def _is_met(name: str, known: dict[str, Problem]) -> bool:
    """Whether both find a problem of that name in a published folder, the same."""
    path = PurePosixPath(f"{TREE}/{name}_cuda.py")
    said, candidate = sources.named(path), from_member(Member(path=path, content=b""), 1)
    assert said
    try:
        theirs = checked_problem(candidate, known).number
    except RequestError:
        with pytest.raises(Misused):
            pkb_folders.today(said)
        return False
    assert pkb_folders.today(said).number == theirs
    return True


def test_both_leave_out_the_same_problems() -> None:
    for name in (*pkb_folders._WITHDRAWN, "45_fsdp_adamw_sharded", "47_fsdp_step_e2e"):
        path = PurePosixPath(f"{TREE}/{name}_cuda.py")
        is_out = name in pkb_folders._WITHDRAWN
        assert from_member(Member(path=path, content=b""), 1).is_withdrawn == is_out


def test_both_have_the_same_limits_and_words() -> None:
    assert sources.MAX_SOURCE_BYTES == MAX_SOURCE_BYTES
    assert sources.MAX_ARCHIVE_BYTES == settings.PKB_MAX_ARCHIVE_BYTES
    assert list(catalogue.BACKENDS) == [value for value, _ in BACKENDS]
    assert list(arguments.HARNESSES) == Harness.values
    assert catalogue.CPU_BACKENDS == CPU_BACKENDS


def test_a_converted_archive_is_taken_in(send: Send, tmp_path: Path) -> None:
    folder = tmp_path / TREE
    folder.mkdir()
    (folder / "1_allreduce_pytorch.py").write_text("def solution(tensor):\n    return tensor\n")
    (folder / "2_allgather_pytorch.py").write_text("")
    assert main(["convert", str(folder), "-o", str(tmp_path / "out.tar.gz")]) == 0
    answer = send({"model": "M", "harness": "zero-shot"}, (tmp_path / "out.tar.gz").read_bytes())
    assert answer.status_code == 201, answer.data
    assert [run["problem"] for run in answer.data["runs"]] == ["allreduce", "allgather"]
