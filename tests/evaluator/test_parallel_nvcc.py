"""nvcc with its passes side by side makes what nvcc makes, and reads few headers."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from evaluator.rank.builds import HEADERS, PARALLEL_NVCC, named_in_source
from tests.evaluator.test_builds import OPERATORS, replace_program

pytestmark = pytest.mark.nvcc

CUDA = """
static __device__ int hidden;
namespace {
__global__ void fill(int* to) { *to = hidden + THREE; }
}
void launch(int* to) { fill<<<1, 1>>>(to); }
"""


def nvcc(*arguments: str, cwd: Path) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """nvcc in parallel, and the first argument of each call of nvcc itself."""
    log, real = cwd / "calls", cwd / "nvcc"
    replace_program(real, f'#!/bin/sh\necho "$1" >> {log}\nexec nvcc "$@"\n')
    log.unlink(missing_ok=True)
    command = [sys.executable, str(PARALLEL_NVCC), str(real), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done, log.read_text().split()


@pytest.mark.parametrize("dependencies", [[], ["-MD", "-MF", "k.d"]])
def test_nvcc_in_parallel_makes_the_same_object(tmp_path: Path, dependencies: list[str]) -> None:
    Path(tmp_path, "k.cu").write_text(CUDA)
    flags = ["-DTHREE=3", "-O3", "-gencode=arch=compute_90,code=compute_90", *dependencies]
    flags.append("--no-compress")
    subprocess.run(["nvcc", *flags, "-c", "k.cu", "-o", "plain.o"], cwd=tmp_path, check=True)
    done, calls = nvcc(*flags, "-c", "k.cu", "-o", "parallel.o", cwd=tmp_path)
    assert (done.returncode, done.stderr, calls) == (0, "", ["-dryrun"])
    assert symbols(tmp_path / "parallel.o") == symbols(tmp_path / "plain.o")
    made = Path(tmp_path, "parallel.o").read_bytes()
    entry = re.search(rb"\.entry (_ZN\w+fillEPi)", made)
    assert entry is not None
    assert b"\0" + entry[1] + b"\0" in made  # the host asks for what the device has


def symbols(path: Path) -> list[str]:
    """Kinds and names; the name of the module differs, as it does from one file to another."""
    told = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout
    named = [
        re.sub(r"[0-9a-f]{8}_4_k_cu_[0-9a-f]{8}", "ID", line[17:]) for line in told.splitlines()
    ]
    return sorted(named)


@pytest.mark.parametrize("code", [["sm_90"], ["sm_80", "sm_90"]])
def test_nvcc_in_parallel_says_what_is_wrong(tmp_path: Path, code: list[str]) -> None:
    Path(tmp_path, "k.cu").write_text(CUDA)
    archs = [f"-gencode=arch={name.replace('sm', 'compute')},code={name}" for name in code]
    done, calls = nvcc(*archs, "-c", "k.cu", "-o", "k.o", cwd=tmp_path)
    assert done.returncode != 0
    assert 'identifier "THREE" is undefined' in done.stderr
    assert len(calls) == len(code)  # more than one architecture is left to nvcc
    done, _ = nvcc(*archs, "-DTHREE=3", "-c", "k.cu", "-o", "k.o", cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.slow
def test_nvcc_reads_few_headers(tmp_path: Path) -> None:
    source = """
    #include <torch/extension.h>
    #include <cuda_bf16.h>
    __global__ void copy(const __nv_bfloat16* from, __nv_bfloat16* to) { to[0] = from[0]; }
    void launch(torch::Tensor x, torch::Tensor y) {
        TORCH_CHECK(x.scalar_type() == torch::kBFloat16 && y.sizes() == x.sizes());
        copy<<<1, 1>>>(reinterpret_cast<const __nv_bfloat16*>(x.data_ptr<at::BFloat16>()),
                       reinterpret_cast<__nv_bfloat16*>(y.data_ptr()));
    }
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
    """
    Path(tmp_path, "k.cu").write_text(source)
    Path(tmp_path, "named_in_source.h").write_text(named_in_source(source, OPERATORS))
    system = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    includes = [f"-I{tmp_path}", f"-I{HEADERS}", *(f"-isystem={path}" for path in system)]
    flags = ["-std=c++20", "-DTORCH_EXTENSION_NAME=k", "--expt-relaxed-constexpr", "-arch=sm_90"]
    done, _ = nvcc(*flags, *includes, "-ptx", "k.cu", "-o", "k.ptx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ".entry" in Path(tmp_path, "k.ptx").read_text()
