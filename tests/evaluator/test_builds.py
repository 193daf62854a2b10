"""Extensions: built once for all ranks, with few headers where those are enough."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from evaluator.messages.needs import includes_thunderkittens
from evaluator.rank.builds import HEADERS, named_in_source, share_builds, uses_extensions

RANKS = 3
FORK = multiprocessing.get_context("fork")
TORCH_HEADERS = Path(cpp_extension.include_paths()[0])
OPERATORS = TORCH_HEADERS / "ATen" / "ops"
COUNTING_COMPILER = """#!/bin/sh
case " $* " in *" -c "*) echo compiled >> {log};; esac
exec g++ "$@"
"""
# An extension that needs no headers of torch compiles in a second.
PLAIN = """
#include <Python.h>
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(VALUE); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, nullptr}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_plain() { return PyModule_Create(&definition); }
"""
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many files the compiler has been asked for, in a build folder of the test's own."""
    log, compiler = tmp_path / "log", tmp_path / "g++"
    replace_program(compiler, COUNTING_COMPILER.format(log=log))
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    return lambda: len(log.read_text().split()) if log.exists() else 0


def plain(value: object) -> int:
    """The answer of an extension in which it is compiled in."""
    module = cpp_extension.load_inline(  # type: ignore[no-untyped-call]
        "plain", PLAIN.replace("VALUE", str(value)), no_implicit_headers=True
    )
    return int(module.answer())


def on_ranks(work: Callable[[int], object]) -> list[str]:
    """What each of several processes gets at the same time, or the error that it raises."""

    def rank(number: int) -> None:
        share_builds(cpp_extension)
        start.wait()
        try:
            told = str(work(number))
        except Exception as error:  # noqa: BLE001 - the test's subject
            told = f"{type(error).__name__}: {error}"
        answers[number][1].send(told)

    start = FORK.Barrier(RANKS)
    answers = [FORK.Pipe(duplex=False) for _ in range(RANKS)]
    processes = [FORK.Process(target=rank, args=[number]) for number in range(RANKS)]
    for process in processes:
        process.start()
    told = [str(reader.recv()) for reader, _ in answers]
    for process in processes:
        process.join()
    return told


def test_all_ranks_get_what_one_of_them_compiles(compiled: Callable[[], int]) -> None:
    assert on_ranks(lambda rank: plain(42)) == ["42"] * RANKS
    assert compiled() == 1


def test_sources_of_one_name_are_told_apart(compiled: Callable[[], int]) -> None:
    assert on_ranks(plain) == ["0", "1", "2"]
    assert on_ranks(lambda rank: (plain(7), plain(8), plain(7))) == ["(7, 8, 7)"] * RANKS
    assert compiled() == RANKS + 2


def test_files_are_built_once_as_well(compiled: Callable[[], int], tmp_path: Path) -> None:
    source = tmp_path / "plain.cpp"
    source.write_text(PLAIN.replace("VALUE", "5"))

    def answer(rank: int) -> int:
        return int(cpp_extension.load("plain", str(source)).answer())

    assert on_ranks(answer) == ["5"] * RANKS
    assert compiled() == 1


def test_a_rank_may_compile_while_the_others_wait_at_a_barrier(
    compiled: Callable[[], int],
) -> None:
    built = FORK.Barrier(RANKS)

    def first_alone(rank: int) -> int:
        if rank == 0:
            plain(3)
        built.wait()
        return plain(3)

    assert on_ranks(first_alone) == ["3"] * RANKS
    assert compiled() == 1


def test_all_ranks_raise_the_error_that_torch_alone_would(compiled: Callable[[], int]) -> None:
    told = on_ranks(lambda rank: plain("1 +"))
    assert set(told) == {told[0]}
    assert told[0].startswith("RuntimeError: Error building extension 'plain'")
    assert "error: expected primary-expression" in told[0]
    assert HEADERS.name not in re.findall(r"-I\S*/(\w+)", told[0])
    assert compiled() == 2  # with few headers and with all


def test_what_few_headers_do_not_compile_is_built_with_all(compiled: Callable[[], int]) -> None:
    only_without = "#if __has_include(<named_in_source.h>)\n#error ours\n#endif\n"
    places = on_ranks(
        lambda rank: (
            Path(
                cpp_extension.load_inline(  # type: ignore[no-untyped-call]
                    "plain", only_without + PLAIN.replace("VALUE", "1"), no_implicit_headers=True
                ).__file__
            ).parent.name
        )
    )
    assert places == ["all"] * RANKS
    assert compiled() == 2


def test_who_dies_while_compiling_leaves_the_build_to_others(
    compiled: Callable[[], int], tmp_path: Path
) -> None:
    def alone() -> None:
        share_builds(cpp_extension)
        plain(9)

    compiler = Path(os.environ["CXX"])
    working = compiler.read_text()
    replace_program(compiler, working.replace("exec g++", "sleep 2; exit 1 #"))
    unlucky = FORK.Process(target=alone)
    unlucky.start()
    while not compiled():
        time.sleep(0.01)
    unlucky.kill()
    unlucky.join()
    (folder,) = (tmp_path / "extensions").iterdir()
    assert Path(folder, "few", "lock").exists()  # torch's own, for which it would wait for ever
    replace_program(compiler, working)
    assert on_ranks(lambda rank: plain(9)) == ["9"] * RANKS
    assert list((tmp_path / "extensions").iterdir()) == [folder]


def replace_program(path: Path, text: str) -> None:
    """Somebody may be running the one before."""
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.slow
@pytest.mark.similar
def test_functions_take_and_return_what_they_do_with_all_headers(
    compiled: Callable[[], int],
) -> None:
    source = """
    std::vector<torch::Tensor> twice(const std::vector<torch::Tensor>& given,
                                     std::optional<torch::Tensor> more, torch::ScalarType dtype) {
        std::vector<torch::Tensor> result;
        for (const auto& x : given) {
            TORCH_CHECK(x.is_contiguous(), "a dense tensor, please");
            auto y = torch::empty_like(x);
            const float* from = x.data_ptr<float>();
            float* to = y.data_ptr<float>();
            at::parallel_for(0, x.numel(), 1, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) to[i] = 2 * from[i];
            });
            result.push_back(more ? (y + *more).to(dtype) : y.to(dtype));
        }
        return result;
    }
    """

    def call(rank: int) -> list[object]:
        module = cpp_extension.load_inline("twice", source, functions=["twice"])  # type: ignore[no-untyped-call]
        torch.set_num_threads(1)  # those of the process that was forked are not here
        one = torch.ones(2, 3)
        (y,) = module.twice([one], None, torch.float64)
        (z,) = module.twice([one], one, torch.float32)
        try:
            module.twice([one.t()], None, torch.float32)
        except RuntimeError as error:
            refused = "a dense tensor, please" in str(error)
        return [Path(module.__file__).parent.name, y.dtype, float(y.sum()), float(z.sum()), refused]

    assert on_ranks(call) == ["['few', torch.float64, 12.0, 18.0, True]"] * RANKS
    assert compiled() == 1


def test_a_value_passes_into_python_with_few_headers_as_with_all(tmp_path: Path) -> None:
    """A conversion that is missing would compile, and fail in a call."""
    Path(tmp_path, "named_in_source.h").write_text(named_in_source("", OPERATORS))
    few = headers_that_convert(["-I", str(tmp_path), "-I", str(HEADERS)])
    assert few == headers_that_convert([])
    assert any(path.endswith("torch/csrc/utils/pybind.h") for path in few)


def headers_that_convert(includes: list[str]) -> set[str]:
    system = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    command = ["g++", "-std=c++20", "-M", "-x", "c++", "-", *includes]
    command += [part for path in system for part in ("-isystem", path)]
    done = subprocess.run(
        command, input="#include <torch/extension.h>\n", capture_output=True, text=True, check=True
    )
    paths = [path for path in done.stdout.split() if path.startswith("/")]
    return {path for path in paths if re.search(r"\btype_caster\b", Path(path).read_text())}


@pytest.mark.parametrize(
    ("source", "operators"),
    [
        ("torch::Tensor f(at::Tensor x) { return x.sum(); }", []),
        ("auto y = torch::empty({1}); at::mm(a, b); sum(x);", ["empty", "mm"]),
        ("using namespace at; auto y = mm(a, zeros({1}));", ["mm", "zeros"]),
        ("namespace t = torch; t::cat(xs)", ["cat"]),
    ],
)
def test_operators_are_found_by_name(source: str, operators: list[str]) -> None:
    header = named_in_source(source, OPERATORS)
    assert re.findall(r"ATen/ops/(\w+)\.h", header) == operators
    assert ("OPERATORS_ARE_NAMED" in header) == bool(operators)


def test_registering_operators_brings_their_library() -> None:
    assert "LIBRARY_IS_NAMED" in named_in_source("TORCH_LIBRARY(mine, m) {}", OPERATORS)
    assert "LIBRARY_IS_NAMED" not in named_in_source("at::mm(a, b)", OPERATORS)


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        ('#include "kittens.cuh"', True),
        ("# include <pyutils/torchutils.cuh>", True),
        ("from utils.parallelkittens_runtime import get_or_create_barrier", True),
        ("void f(kittens::py::TKParallelTensor& x)", True),
        ("#include <torch/extension.h>  // not kittens.cuh", False),
    ],
)
def test_thunderkittens_is_needed_where_its_names_are_used(source: str, needed: bool) -> None:
    assert includes_thunderkittens(source) == needed


def test_a_submission_that_may_build_names_the_module_that_builds() -> None:
    assert uses_extensions("from torch.utils.cpp_extension import load_inline")
    assert uses_extensions("from utils.cuda_helpers import compile_cuda_extension")
    assert not uses_extensions("import torch.distributed as dist")
