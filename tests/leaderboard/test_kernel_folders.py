"""Kernels of several files, as people submit them and as pages show them."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from evaluator.client.checking import WantedSetting, checked
from evaluator.client.sources import members
from evaluator.messages.source_files import MOST_FILES, joined
from leaderboard.kit.request_error import RequestError
from leaderboard.models import Kernel
from leaderboard.submissions.archives import read_archive, read_folder
from leaderboard.submissions.sources import Candidate, handed_in
from tests.leaderboard.uploads import ABOUT, GOOD, NAME, ONE, Send, make_tar, make_zip

MANIFEST = b'problem = "allreduce"\nbackend = "cuda"\nentry = "main:run"\n'
MAIN = b"from .other import run\n"
FILES = {
    "pkb.toml": MANIFEST,
    "main.py": MAIN,
    "other.py": b"def run(tensor):\n    return tensor\n",
    "csrc/k.cu": b"__global__ void k() {}\n",
}
CPU = {"pkb.toml": MANIFEST.replace(b"cuda", b"pytorch"), "csrc/k.cu": b""}
TEXT = joined({path: data.decode() for path, data in FILES.items()})


def _under(folder: str, files: Mapping[str, bytes] = FILES) -> dict[str, bytes]:
    return {f"{folder}/{path}": data for path, data in files.items()}


def _candidates(archive: bytes) -> list[Candidate]:
    found = handed_in(read_archive(io.BytesIO(archive)), 1)
    if found.fault:
        raise found.fault
    return list(found.candidates)


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize("folder", ["", "mine/", "attempt_1/mine/"])
def test_a_folder_with_a_manifest_is_one_kernel(make: Any, folder: str) -> None:
    files = {f"{folder}{path}": data for path, data in FILES.items()}
    (found,) = _candidates(make({**files, f"{folder}README.md": b"\xff"}))
    assert (found.problem, found.backend, found.source) == ("allreduce", "cuda", TEXT)


def test_kernels_of_one_and_of_several_files_come_together(tmp_path: Path) -> None:
    named = {**FILES, "pkb.toml": b'entry = "main:run"\n'}
    files = {NAME: GOOD, **_under("attempt_2/2_allgather_cuda", named), "loose.cu": b"\xff"}
    one, several = _candidates(make_zip(files))
    assert (one.problem, one.where) == ("1", NAME)
    assert (several.problem, several.slug, several.attempt) == ("2", "allgather", 2)
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    again = handed_in(read_folder(tmp_path), 1)
    assert again.fault is None
    assert {each.digest for each in again.candidates} == {one.digest, several.digest}
    assert {member.data.decode() for member in members(tmp_path)} == {one.source, several.source}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({**FILES, "pkb.toml": b'problem = "allreduce"\nbuild = 1\nentry = "no:x"\n'}, "'build'"),
        ({**FILES, "pkb.toml": b'entry = "main:run"\n'}, "names no problem"),
        ({**FILES, "other.py": b"\xff"}, "not UTF-8"),
        ({**FILES, **{f"m{number}.py": b"" for number in range(MOST_FILES)}}, "files, and 64"),
        (
            {
                **FILES,
                **{f"m{number}.h": os.urandom(125 << 10).hex().encode() for number in range(5)},
            },
            "more than 1 MiB",
        ),
    ],
)
def test_a_folder_that_is_no_kernel_is_refused_with_all_faults(
    files: dict[str, bytes], says: str
) -> None:
    with pytest.raises(RequestError, match=says) as caught:
        _candidates(make_tar(_under("mine", files)))
    assert "mine" in str(caught.value.fields)


def test_the_client_checks_what_the_site_reads(tmp_path: Path) -> None:
    for path, data in _under("1_allreduce_cuda").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (found,) = members(tmp_path)
    assert found.data.decode() == TEXT
    assert checked(found, WantedSetting(), is_alone=False).is_fine
    (tmp_path / "1_allreduce_cuda/pkb.toml").write_text('entry = "none:x"\nmore = 1\n')
    (broken,) = members(tmp_path)
    texts = [each.text for each in checked(broken, WantedSetting(), is_alone=False).findings]
    assert any("'more'" in text for text in texts)
    assert any("none" in text for text in texts)


def test_the_api_stores_one_text_and_its_page_shows_each_file(send: Send, client: Client) -> None:
    pages = {**FILES, "csrc/k.cu": b"// nothing\n"}
    text = joined({path: data.decode() for path, data in pages.items()})
    answer = send({**ONE, "source": text, "visibility": "public"})
    assert answer.status_code == 201, answer.json()
    kernel = Kernel.objects.get()
    assert kernel.source.text == text
    page = client.get(f"/kernels/{kernel.source_id}").content.decode()
    assert "4 files:" in page
    assert "<h3><code>csrc/k.cu</code></h3>" in page
    assert 'id="L-3"' in page
    wrong = send({**ONE, "source": text.replace("main:run", "none:run")})
    assert wrong.status_code == 400
    assert "names a module that is no file: none" in wrong.json()["error"]["message"]


def test_the_api_takes_an_archive_of_a_folder(send: Send) -> None:
    answer = send(ABOUT, make_zip(_under("mine", {**FILES, **CPU})))
    assert answer.status_code == 201, answer.json()
    assert Kernel.objects.get().source.held_text.startswith("# pkb: files\n")
