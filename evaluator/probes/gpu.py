"""Tries inside a sandbox with GPUs what kernels need there. One JSON line an attempt.

`python -m evaluator.probes.gpu <answer fd> <ranks>`: W ranks, forked before CUDA starts, as a
run's.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from evaluator.host.thunderkittens import thunderkittens_root
from problems.running.mesh import join_world

ELEMENTS = 1 << 10
NO_ANSWER = "no answer"
NVCC_TIMEOUT_S = 60.0
TRITON_SOURCE = """
import triton
import triton.language as tl

@triton.jit
def add_one(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i, tl.load(x + i) + 1)
"""
CUDA_SOURCE = """
__global__ void add_one(float* x) { x[threadIdx.x] += 1; }
extern "C" int run(float* x, int n) {
    add_one<<<1, n>>>(x);
    return (int)cudaDeviceSynchronize();
}
"""
KITTENS_SOURCE = """
#include "kittens.cuh"
__global__ void clear(kittens::bf16* x) { x[threadIdx.x] = kittens::bf16(0.0f); }
"""
KITTENS_MACROS = {9: "KITTENS_HOPPER", 10: "KITTENS_BLACKWELL"}
KITTENS_TIMEOUT_S = 90.0


def main(answer_fd: int, world_size: int) -> int:
    """Let W ranks try everything, and write what they find; return 0."""
    for name in ATTEMPTS:  # what stays so where a rank dies or hangs
        _tell(answer_fd, name, False, NO_ANSWER)
    for rank in range(world_size):
        if os.fork() == 0:
            _try_all(answer_fd, rank, world_size)
            os._exit(0)
    for _ in range(world_size):
        os.wait()
    return 0


def _try_all(answer_fd: int, rank: int, world_size: int) -> None:
    """Make the same attempts in the same order on every rank: most are collective."""
    try:
        join_world("cuda", "/tmp/gpu-probe", rank, world_size, timeout_s=30.0)
    except Exception as error:  # noqa: BLE001 - every failure is an answer
        _tell(answer_fd, "NCCL", False, _line(error))
        return
    for name, attempt in ATTEMPTS.items():
        try:
            wrong = attempt(rank, world_size)
            torch.cuda.synchronize()
            _tell(answer_fd, name, wrong is None, wrong or "works")
        except Exception as error:  # noqa: BLE001 - as above
            _tell(answer_fd, name, False, _line(error))


def _tell(answer_fd: int, name: str, passed: bool, detail: str) -> None:
    """Write a line shorter than a pipe's atomic write, so that ranks' lines do not mix."""
    line = json.dumps({"name": name, "passed": passed, "detail": detail[:200]})
    os.write(answer_fd, f"{line}\n".encode())


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _nccl(rank: int, world_size: int) -> str | None:
    total = torch.full((ELEMENTS,), rank + 1.0, device="cuda")
    dist.all_reduce(total)
    return _expect(total, world_size * (world_size + 1) / 2)


def _peer_copies(rank: int, world_size: int) -> str | None:
    apart = [r for r in range(world_size) if r != rank]
    closed = [r for r in apart if not torch.cuda.can_device_access_peer(rank, r)]
    if closed:
        return f"GPU {rank} cannot reach {closed}"
    own = torch.full((ELEMENTS,), 1.0 + rank, device="cuda")
    there = [own.to(f"cuda:{r}").to(f"cuda:{rank}") for r in apart]
    return next((wrong for copy in there if (wrong := _expect(copy, 1.0 + rank))), None)


def _symmetric_memory(group: dist.ProcessGroup) -> str | None:
    import torch.distributed._symmetric_memory as symmetric

    rank, size = dist.get_rank(group), dist.get_world_size(group)
    own = symmetric.empty(
        ELEMENTS, dtype=torch.float32, device=torch.device("cuda", torch.cuda.current_device())
    )
    handle: Any = symmetric.rendezvous(own, group)
    own.fill_(rank + 1.0)
    handle.barrier()
    peer = (rank + 1) % size
    read = handle.get_buffer(peer, (ELEMENTS,), torch.float32).clone()
    handle.barrier()
    return _expect(read, peer + 1.0)


def _symmetric_world(rank: int, world_size: int) -> str | None:
    world = dist.group.WORLD
    assert world is not None
    return _symmetric_memory(world)


def _symmetric_neighbours(rank: int, world_size: int) -> str | None:
    """Try the inner axis of a mesh of two: ranks 0, 1 and 2, 3 and so on."""
    pairs = [[first, first + 1] for first in range(0, world_size - 1, 2)]
    return _symmetric_in(pairs, rank)


def _symmetric_strided(rank: int, world_size: int) -> str | None:
    """Try the outer axis of that mesh: ranks 0, 2, ... and 1, 3, ..."""
    lines = [list(range(first, world_size, 2)) for first in range(2)]
    return _symmetric_in([line for line in lines if len(line) > 1], rank)


def _symmetric_in(lines: list[list[int]], rank: int) -> str | None:
    groups = [(line, dist.new_group(line)) for line in lines]
    own = [group for line, group in groups if rank in line]
    return _symmetric_memory(own[0]) if own else None


def _triton(rank: int, world_size: int) -> str | None:
    path = Path(f"/tmp/triton_probe_{rank}.py")
    path.write_text(TRITON_SOURCE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.ones(128, device="cuda")
    module.add_one[(1,)](x, 128)
    return _expect(x, 2.0)


def _nvcc(rank: int, world_size: int) -> str | None:
    if rank:
        return None
    library = "/tmp/nvcc_probe.so"
    if wrong := _compile(CUDA_SOURCE, ["-o", library], NVCC_TIMEOUT_S):
        return wrong
    x = torch.ones(128, device="cuda")
    torch.cuda.synchronize()
    status = ctypes.CDLL(library).run(ctypes.c_void_p(x.data_ptr()), 128)
    return f"the kernel ended with error {status}" if status else _expect(x, 2.0)


def _thunderkittens(rank: int, world_size: int) -> str | None:
    if rank:
        return None
    root = thunderkittens_root()
    if not root.is_dir():
        return f"there is none at THUNDERKITTENS_ROOT={root}"
    macro = KITTENS_MACROS.get(torch.cuda.get_device_capability()[0])
    if macro is None:
        return "there is none for these GPUs"
    flags = ["-std=c++20", "--expt-relaxed-constexpr", "--expt-extended-lambda", f"-D{macro}"]
    folders = [f"-I{root / 'include'}", f"-I{root / 'prototype'}"]
    output = ["-o", "/tmp/kittens_probe.so"]
    return _compile(KITTENS_SOURCE, [*flags, *folders, *output], KITTENS_TIMEOUT_S)


def _compile(source: str, options: list[str], timeout_s: float) -> str | None:
    """Return what nvcc says first where it does not compile the source for this GPU."""
    path = Path("/tmp/compiler_probe.cu")
    path.write_text(source)
    major, minor = torch.cuda.get_device_capability()
    architecture = f"-arch=sm_{major}{minor}" + ("a" if major >= 9 else "")
    command = ["nvcc", "-shared", "-Xcompiler", "-fPIC", architecture, *options, str(path)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if built.returncode == 0:
        return None
    return (built.stderr or built.stdout).strip().partition("\n")[0] or "nvcc failed"


def _expect(got: torch.Tensor, value: float) -> str | None:
    wrong = int((got != value).sum())
    return f"{wrong} of {got.numel()} elements are wrong" if wrong else None


ATTEMPTS: dict[str, Callable[[int, int], str | None]] = {
    "NCCL": _nccl,
    "peer copies": _peer_copies,
    "symmetric memory, world": _symmetric_world,
    "symmetric memory, neighbours": _symmetric_neighbours,
    "symmetric memory, strided": _symmetric_strided,
    "Triton": _triton,
    "nvcc": _nvcc,
    "ThunderKittens": _thunderkittens,
}

if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
