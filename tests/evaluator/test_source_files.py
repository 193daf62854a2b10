"""Kernels of several files: one text that names them, a manifest, and how they are judged."""

from __future__ import annotations

import ast
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator import Job, Verdict
from evaluator.messages.entry import has_entry
from evaluator.messages.job import Backend
from evaluator.messages.languages import languages
from evaluator.messages.manifest import BadManifestError, Manifest, manifest_of
from evaluator.messages.needs import Ability, beyond_processors, in_words, places
from evaluator.messages.source_files import MOST_FILES, Part, as_python, is_path, joined, parts_of
from tests.evaluator.judging import judged

CPP = """\
#include <torch/extension.h>
#include "twice.h"
torch::Tensor half_of_twice(torch::Tensor x) { return twice(x) / 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("half_of_twice", &half_of_twice); }
"""
HEADER = "inline torch::Tensor twice(torch::Tensor x) { return x + x; }\n"
KERNEL = """\
import os

from torch.utils.cpp_extension import load

import plain
from .parts.sums import total

folder = os.path.dirname(__file__)
native = load("halves", sources=["halves.cpp"], extra_include_paths=[folder])


def run(tensor):
    return native.half_of_twice(total(plain.copied(tensor)))
"""
SUMS = "import torch.distributed as dist\n\n\ndef total(t):\n    dist.all_reduce(t)\n    return t\n"
FILES = {
    "pkb.toml": 'entry = "main:run"\nnvcc_options = ["-O3", "-DTILE=64"]\n',
    "main.py": KERNEL,
    "plain.py": "def copied(t):\n    return t.clone()\n",
    "parts/sums.py": SUMS,
    "halves.cpp": CPP,
    "twice.h": HEADER,
}
CUDA = {"kernel.py": "def solution(t):\n    return t\n", "k.cu": "// '''\n__global__ void k() {}\n"}
paths = st.from_regex(r"[a-z]{1,3}(?:/[a-z_]{1,3}){0,2}\.(?:py|cu|h|toml)", fullmatch=True)
texts = st.text(alphabet=string.ascii_letters + "#:'\"\\ \r\n", max_size=40)


@given(st.dictionaries(paths, texts, min_size=1, max_size=5))
def test_files_come_back_from_their_text_with_their_lines(files: dict[str, str]) -> None:
    source = joined(files)
    parts = parts_of(source)
    ended = {
        path: text if text.endswith("\n") or not text else f"{text}\n"
        for path, text in files.items()
    }
    assert {part.path: part.text for part in parts} == ended
    assert joined(ended) == source
    lines = source.split("\n")
    assert all(lines[part.line - 2].endswith(f"lines of {part.path}") for part in parts)
    assert as_python(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    "source",
    [
        "def solution():\n    pass\n",
        "# pkb: files\n",
        "# pkb: files\n# pkb: 2 lines of a.py\nx = 1\n",
        "# pkb: files\n# pkb: 1 lines of ../a.py\nx = 1\n",
        "# pkb: files\n# pkb: 0 lines of b.py\n# pkb: 0 lines of a.py\n",
        "# pkb: files\n# pkb: 0 lines of a.py\n# pkb: 0 lines of a.py\n",
        joined({f"m{number}.py": "" for number in range(MOST_FILES + 1)}),
    ],
)
def test_any_other_text_is_a_file_itself(source: str) -> None:
    assert parts_of(source) == []
    assert as_python(source) == source


@pytest.mark.parametrize(
    "path",
    ["/a.py", "a/../b.py", ".hidden.py", "a//b.py", "a b.py", "a.so", "é.py", "a.py\n", "a/.py"],
)
def test_a_path_leads_nowhere_else(path: str) -> None:
    assert not is_path(path)


def test_readers_of_a_source_read_all_files_and_name_lines_of_the_text() -> None:
    source = joined(CUDA)
    assert has_entry(source)
    ast.parse(as_python(source))
    assert beyond_processors(source) == "CUDA code (__global__, line 4)"
    built = joined({**CUDA, "load.py": "from torch.utils.cpp_extension import load\n"})
    assert languages(built) == (Backend.CUDA,)
    assert in_words(places(built), built) == ["nvcc (cpp_extension, line 9)"]


@pytest.mark.parametrize("opened", ["'''", "x = (", "if False: \\", "x = '"])
def test_what_a_file_leaves_open_hides_nothing_of_the_next(opened: str) -> None:
    files = {"a.cu": f"#if 0 {opened}", "b.py": opened, "k.cu": "multimem.ld_reduce\n#if 0\n"}
    source = joined({**files, "last.py": "import triton\n"})
    assert places(source) == {
        Ability.MULTICAST: ("multimem.ld_reduce", 7),
        Ability.TRITON: ("import triton", 10),
    }


def test_many_heads_are_read_in_linear_time() -> None:
    heads = (f"# pkb: 0 lines of a{number:06}.py" for number in range(30_000))
    begun = time.monotonic()
    assert parts_of("\n".join(["# pkb: files", *heads, ""])) == []
    assert time.monotonic() - begun < 2.0


def test_a_manifest_says_where_to_begin_and_names_all_its_faults() -> None:
    parts = parts_of(joined(FILES))
    assert manifest_of(parts) == Manifest(entry="main:run", nvcc_options=("-O3", "-DTILE=64"))
    assert manifest_of(parts_of(joined(CUDA))).entry == "kernel:solution"
    text = 'entry = "none:solution"\nother = 1\nbackend = "zig"\nnvcc_options = ["-include", 3]\n'
    with pytest.raises(BadManifestError) as caught:
        manifest_of([Part("pkb.toml", text, 1)])
    for word in ("'other'", "none", "zig", "-include", "'3'"):
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["x", "a = " + "[" * 5000, 'entry = "kernel:"', "entry = 3"])
def test_a_manifest_that_cannot_be_read_is_a_fault(text: str) -> None:
    with pytest.raises(BadManifestError):
        manifest_of([Part("kernel.py", "", 1), Part("pkb.toml", text, 1)])


def test_files_are_a_package_whose_folder_is_the_present_one() -> None:
    report = judged(Job(problem="allreduce", source=joined(FILES)))
    assert report.verdict is Verdict.OK, report.message


def test_a_declared_package_that_a_host_lacks_is_no_fault_of_the_kernel() -> None:
    told = 'dependencies = ["torch", "no_such_package.inner"]\n'
    source = joined({"kernel.py": "import no_such_package\n", "pkb.toml": told})
    report = judged(Job(problem="allreduce", source=source))
    assert report.verdict is Verdict.HOST_UNSUPPORTED
    assert "declares no_such_package" in report.message


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"kernel.py": "x = 1\n"}, "defines no solution()"),
        ({"other.py": "def solution(t):\n    return t\n"}, "entry names a module that is no file"),
    ],
)
def test_a_package_without_its_entry_point_lacks_one(files: dict[str, str], message: str) -> None:
    report = judged(Job(problem="allreduce", source=joined(files)))
    assert report.verdict is Verdict.MISSING_ENTRY_POINT
    assert message in report.message
