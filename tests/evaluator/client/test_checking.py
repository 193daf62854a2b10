"""`pkb check` says without a site what would be refused, what would fail, and what hosts need."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluator.client.conftest import Pkb
from tests.evaluator.client.scripted import write

GOOD = "def solution(tensor):\n    return tensor\n"

Output = pytest.CaptureFixture[str]


Found = tuple[int, list[dict[str, Any]]]
Check = Callable[..., Found]


@pytest.fixture
def check(pkb: Pkb, capsys: Output) -> Check:
    """Checks paths; returns the exit status and what is found of each file."""

    def checked(*words: object) -> Found:
        status = pkb("check", "--json", *words)
        return status, json.loads(capsys.readouterr().out)

    return checked


@pytest.mark.parametrize(
    ("name", "source", "words", "says"),
    [
        ("1_allreduce_pytorch.py", "x = 1\n", (), "refused: it never defines `solution`"),
        ("kernel.py", GOOD, ("--backend", "cuda"), "refused: There is no problem kernel"),
        ("1_allreduce.py", GOOD, (), "refused: no backend"),
        ("1_alreduce_cuda.py", GOOD, (), "1_alreduce. Did you mean 1_allreduce"),
        ("2_allreduce_cuda.py", GOOD, (), "refused: There is no problem 2_allreduce"),
        ("1_allreduce_cuda.py", GOOD, ("--world-size", 3), "refused: world_size 3 is none of 2, 4"),
        ("1_allreduce_cuda.py", GOOD, ("--device", "cpu"), "refused: cuda kernels are judged on"),
        ("1_allreduce_cuda.py", "#" * (257 << 10), (), "refused: it is larger than 256 KiB"),
        ("1_allreduce_cuda.py", GOOD + "\0", (), "refused: it holds a NUL"),
        ("1_allreduce_cuda.py", "def solution(:", (), "fails: it does not parse"),
        ("1_allreduce_cuda.py", "def solution(): ...", (), "fails: solution takes 0 arguments"),
        ("1_allreduce_cuda.py", "def solution(a, b): ...", (), "fails: solution needs 2 arguments"),
        (
            "1_allreduce_cuda.py",
            "def solution(a, *, b): ...",
            (),
            "fails: solution needs b by name",
        ),
        ("1_allreduce_pytorch.py", GOOD + "x = y.cuda()\n", (), "fails: it needs a GPU"),
    ],
)
def test_each_fault_is_named(
    *, check: Check, tmp_path: Path, name: str, source: str, words: tuple[object, ...], says: str
) -> None:
    write(tmp_path, {name: source})
    status, (found,) = check(tmp_path / name, *words)
    assert status == 1
    assert not found["is_fine"]
    assert says in "\n".join(f"{each['kind']}: {each['text']}" for each in found["findings"])


def test_what_no_host_has_is_noted(check: Check, tmp_path: Path) -> None:
    source = "import os, cupy.cuda\nimport torch.distributed\nfrom triton import jit\n"
    source += "from utils.cuda_helpers import x\ntry:\n    import jax\nexcept ImportError: ...\n"
    write(tmp_path, {"1_allreduce_pytorch.py": source + GOOD})
    status, (found,) = check(tmp_path / "1_allreduce_pytorch.py", "--device", "cuda")
    texts = [each["text"] for each in found["findings"] if "it imports" in each["text"]]
    assert status == 0
    assert len(texts) == 1
    assert texts[0].startswith("it imports cupy, which hosts of this release lack")


@pytest.mark.parametrize(
    "source",
    [
        "def solution(tensor): ...",
        "def solution(*args): ...",
        "def solution(a, b=1, *, c=2): ...",
        "solution = print",
        "from numpy import *",
    ],
)
def test_what_can_be_called_is_fine(pkb: Pkb, capsys: Output, tmp_path: Path, source: str) -> None:
    write(tmp_path, {"1_allreduce_pytorch.py": source})
    assert pkb("check", tmp_path / "1_allreduce_pytorch.py") == 0
    *_, note, fine = capsys.readouterr().out.splitlines()
    assert fine == "  fine"
    least = "not scored on 2 ranks, this problem is ranked from 4"
    assert note == f"  note     practice: {least}; say --device cuda --world-size 4"


def test_what_its_hosts_need_is_told_as_the_site_finds_it(check: Check, tmp_path: Path) -> None:
    write(tmp_path, {"kernel.py": f'{GOOD}S = """multimem.ld_reduce"""\n'})
    wanted = (tmp_path / "kernel.py", "--problem", "allreduce", "--backend", "cuda")
    status, (found,) = check(*wanted)
    assert status == 0
    between = ["GPUs that reach each other's memory", "NCCL"]
    multicast = "NVLink multicast (multimem.ld_reduce, line 3)"
    assert found["needs"] == [*between, multicast, "nvcc"]
    status, (found,) = check(*wanted, "--placement", "shared")
    assert found["needs"] == [multicast, "nvcc"]
    assert found["findings"][0]["text"].endswith("share a GPU: NVLink multicast")


def test_files_among_others_are_judged_as_they_are(check: Check, tmp_path: Path) -> None:
    files = {"1_allreduce_cuda.py": "", "2_allgather_triton.py": GOOD, "notes.md": "of them"}
    folder = write(tmp_path / "kernels", files)
    with zipfile.ZipFile(tmp_path / "kernels.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    for path in (folder, tmp_path / "kernels.zip"):
        status, found = check(path)
        assert status == 1
        kinds = {one["problem"]: [each["kind"] for each in one["findings"]] for one in found}
        assert kinds == {"1_allreduce": ["fails"], "2_allgather": []}


def test_older_names_of_published_folders_are_left_to_the_site(
    pkb: Pkb, capsys: Output, tmp_path: Path
) -> None:
    folder = write(tmp_path / "solutions_cuda", {"41_ddp_cuda.py": GOOD})
    assert pkb("check", folder) == 0
    assert "may be an older name" in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--no-such", "x.py")])
def test_a_wrong_call_has_its_status(pkb: Pkb, words: tuple[object, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        pkb("check", *words)
    assert ended.value.code == 2


def test_what_has_no_kernel_is_a_wrong_call(pkb: Pkb, tmp_path: Path) -> None:
    assert pkb("check", tmp_path / "nowhere.py") == 2
    assert pkb("check", write(tmp_path, {"notes.md": ""})) == 2
