"""Where the time goes when an extension is compiled, with all of torch's headers and with few.

`python benchmarks/extension_build.py [--repeat 3] [--operators]`. A source as published kernels
have it goes through the commands that torch's `load_inline` would run: nvcc, with the seconds of
each of its phases, and g++ on the `main.cpp` beside it, which includes torch and nothing else. Then
nvcc with its passes side by side. Where torch can use CUDA, `load_inline` itself follows, without
and with `share_builds`. Medians; needs nvcc, and no GPU: CUDA headers that are not installed are
replaced by their first lines, which flatters both columns alike.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch.utils import cpp_extension

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evaluator.rank.builds import HEADERS, PARALLEL_NVCC, named_in_source, share_builds

CUDA_HOME = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
SOURCE = """
#include <torch/types.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_bf16.h>

__global__ void sum_parts(const int64_t* parts, __nv_bfloat16* total, int64_t ranks, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        float sum = 0;
        for (int64_t r = 0; r < ranks; ++r)
            sum += __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(parts[r])[i]);
        total[i] = __float2bfloat16(sum);
    }
}

void launch(torch::Tensor parts, torch::Tensor total) {
    TORCH_CHECK(total.is_cuda() && total.scalar_type() == torch::kBFloat16);
    // operators
    sum_parts<<<128, 512, 0, at::cuda::getCurrentCUDAStream()>>>(
        parts.data_ptr<int64_t>(), reinterpret_cast<__nv_bfloat16*>(total.data_ptr()),
        parts.size(0), total.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""
OPERATORS = "auto scratch = torch::empty_like(total); total.copy_(scratch + 1);"
STAND_INS = {
    "c10/cuda/impl/cuda_cmake_macros.h": "#define C10_CUDA_BUILD_SHARED_LIBS",
    "cublas_v2.h": "typedef struct cublasContext* cublasHandle_t;"
    "typedef enum { CUBLAS_STATUS_SUCCESS } cublasStatus_t;",
    "cublasLt.h": "typedef struct cublasLtContext* cublasLtHandle_t;",
    "cusparse.h": "typedef struct cusparseContext* cusparseHandle_t;"
    "typedef enum { CUSPARSE_STATUS_SUCCESS } cusparseStatus_t;"
    'extern "C" const char* cusparseGetErrorString(cusparseStatus_t);',
    "cusolver_common.h": "typedef enum { CUSOLVER_STATUS_SUCCESS } cusolverStatus_t;",
    "cusolverDn.h": "#include <cusolver_common.h>\n"
    "typedef struct cusolverDnContext* cusolverDnHandle_t;",
}

Seconds = dict[str, float]


def standard() -> str:
    """The C++ that this version of torch compiles extensions as."""
    text = inspect.getsource(cpp_extension._write_ninja_file_to_build_library)
    return str(re.findall(r"-std=c\+\+\d+", text)[-1])  # the first may be another platform's


def common_flags(folder: Path) -> list[str]:
    """As torch writes them, with stand-ins in `folder`."""
    paths = [Path(cpp_extension.include_paths()[0]), CUDA_HOME / "include"]
    for name, text in STAND_INS.items():
        if not any((path / name).exists() for path in paths):
            print(f"stand-in: {name}")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"#pragma once\n{text}\n")
    system = [folder, *cpp_extension.include_paths(), paths[1], sysconfig.get_path("include")]
    includes = [part for path in system for part in ("-isystem", str(path))]
    return ["-DTORCH_EXTENSION_NAME=sample", "-DTORCH_API_INCLUDE_EXTENSION_H", *includes]


def nvcc_flags(flags: list[str]) -> list[str]:
    architecture = "-gencode=arch=compute_90a,code=sm_90a"
    own = [*cpp_extension.COMMON_NVCC_FLAGS, architecture, "--compiler-options", "-fPIC"]
    return [*flags, *own, "-O3", standard()]


def nvcc_phases(flags: list[str], folder: Path) -> Seconds:
    table = folder / "phases.csv"
    table.unlink(missing_ok=True)
    command = [str(CUDA_HOME / "bin" / "nvcc"), *nvcc_flags(flags), "--time", str(table)]
    total = spent("nvcc", lambda: run([*command, "-c", "k.cu", "-o", "k.o"], folder))
    rows = list(csv.reader(table.read_text().splitlines()))[1:]
    return {**{row[1].strip(): float(row[6]) / 1e3 for row in rows}, **total}


def side_by_side(flags: list[str], folder: Path) -> Seconds:
    command = [sys.executable, str(PARALLEL_NVCC), str(CUDA_HOME / "bin" / "nvcc")]
    command += [*nvcc_flags(flags), "-c", "k.cu", "-o", "k.o"]
    return spent("side by side", lambda: run(command, folder))


def host(flags: list[str], folder: Path) -> Seconds:
    command = ["g++", *flags, "-fPIC", standard(), "-c", "main.cpp", "-o", "main.o"]
    return spent("g++ main.cpp", lambda: run(command, folder))


def run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


def spent(what: str, work: Callable[[], object]) -> Seconds:
    """On the wall, and of processors: the second tells more on a machine that does other things."""
    began, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    processor_s = sum(after[2:4]) - sum(before[2:4])  # of ended children, in both modes
    return {f"{what}, wall": time.perf_counter() - began, f"{what}, processor": processor_s}


def medians(samples: list[Seconds]) -> Seconds:
    return {what: statistics.median(one[what] for one in samples) for what in samples[0]}


def loads(source: str, repeat: int) -> Iterator[tuple[str, Seconds]]:
    """torch's own function, in a new folder each time."""

    def load() -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TORCH_EXTENSIONS_DIR"] = folder
            cpp_extension.load_inline("sample", "", source, extra_cuda_cflags=["-O3"])  # type: ignore[no-untyped-call]

    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0a")
    for column in ("all", "few"):
        if column == "few":
            share_builds(cpp_extension)
        yield column, medians([spent("load_inline", load) for _ in range(repeat)])


def measure(folder: Path, source: str, repeat: int) -> dict[str, Seconds]:
    """Seconds by column and phase."""
    (folder / "k.cu").write_text(source)
    (folder / "main.cpp").write_text("#include <torch/extension.h>\n")
    operators = Path(cpp_extension.include_paths()[0], "ATen", "ops")
    (folder / "named_in_source.h").write_text(named_in_source(source, operators))
    shared = common_flags(folder / "stand-ins")
    columns = {"all": shared, "few": ["-I", str(folder), "-I", str(HEADERS), *shared]}
    seconds: dict[str, Seconds] = {}
    for column, flags in columns.items():
        samples = [
            {**host(flags, folder), **nvcc_phases(flags, folder), **side_by_side(flags, folder)}
            for _ in range(repeat)
        ]
        seconds[column] = medians(samples)
    if torch.cuda.is_available():
        for column, loaded in loads(source, repeat):
            seconds[column].update(loaded)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--operators", action="store_true", help="the source calls some of torch's")
    given = parser.parse_args()
    source = SOURCE.replace("// operators", OPERATORS if given.operators else "")
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(Path(folder), source, given.repeat)
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {standard()}, {os.cpu_count()} cores, load {load:.1f}")
    print(f"{'':28}{'all':>8}{'few':>8}   seconds")
    for phase, all_s in seconds["all"].items():
        print(f"{phase:28}{all_s:8.1f}{seconds['few'][phase]:8.1f}")


if __name__ == "__main__":
    main()
