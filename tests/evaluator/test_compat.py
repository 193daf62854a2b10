"""What published kernels import, as far as it runs without a GPU."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.utils import cpp_extension

from evaluator.compat.utils import parallelkittens_runtime as runtime
from evaluator.compat.utils.cuda_helpers import compile_cuda_extension


class Extension:
    """Remembers what it was asked for, as a compiled kernel's TKParallelTensor would be."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def TKParallelTensor(self, *arguments: Any) -> object:
        self.asked.append(arguments)
        return object()


@pytest.fixture
def ext(monkeypatch: pytest.MonkeyPatch) -> Extension:
    monkeypatch.setattr(dist, "get_rank", lambda: 1)
    monkeypatch.setattr(dist, "get_world_size", lambda: 4)
    monkeypatch.setattr(runtime, "_kept", {})
    return Extension()


def test_a_tensor_is_made_once_for_each_shape_dtype_and_kind(ext: Extension) -> None:
    first = runtime.get_or_create_parallel_tensor(ext, (1, 4, 16, 128))
    assert runtime.get_or_create_parallel_tensor(ext, [1, 4, 16, 128]) is first
    others = [
        runtime.get_or_create_parallel_tensor(ext, (4, 1, 16, 128)),
        runtime.get_or_create_parallel_tensor(ext, (1, 4, 16, 128), torch.int64),
        runtime.get_or_create_parallel_tensor(ext, (1, 4, 16, 128), multicast=False),
    ]
    assert first not in others
    assert ext.asked[0] == ([1, 4, 16, 128], torch.bfloat16, 1, 4, True)
    assert ext.asked[-1] == ([1, 4, 16, 128], torch.bfloat16, 1, 4, False)
    assert len(ext.asked) == 4


def test_two_extensions_share_no_tensor(ext: Extension) -> None:
    other = Extension()
    runtime.get_or_create_parallel_tensor(ext, (8,))
    runtime.get_or_create_parallel_tensor(other, (8,))
    assert len(ext.asked) == len(other.asked) == 1


def test_created_tensors_are_new_each_time(ext: Extension) -> None:
    made = [runtime.create_parallel_tensor(ext, (8,)) for _ in range(2)]
    assert made[0] is not made[1]


def test_a_barrier_is_made_once_for_each_number_of_devices(ext: Extension) -> None:
    barrier = runtime.get_or_create_barrier(ext, num_devices=4)
    assert runtime.get_or_create_barrier(ext, num_devices=4) is barrier
    assert runtime.get_or_create_barrier(ext) is not barrier
    assert ext.asked[0] == ([runtime.BARRIER_ELEMS], torch.int32, 1, 4, True)


@pytest.fixture
def asked_of_torch(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments with which torch is asked for an extension, instead of one."""
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(cpp_extension, "load_inline", arguments.update)
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "")  # whatever is set is restored after the test
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST")
    return arguments


def test_a_kernel_is_compiled_with_the_published_flags(asked_of_torch: dict[str, Any]) -> None:
    compile_cuda_extension("mine", "int x;", ["--use_fast_math"], ["/include"], ["-lcuda"])
    assert asked_of_torch == {
        "name": "mine",
        "cpp_sources": "",
        "cuda_sources": "int x;",
        "extra_cuda_cflags": ["-O3", "--use_fast_math"],
        "extra_include_paths": ["/include"],
        "extra_ldflags": ["-lcuda"],
        "with_cuda": True,
    }


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [(None, "9.0"), ((8, 0), "8.0"), ((9, 0), "9.0a"), ((10, 0), "10.0a"), ((10, 3), "10.3a")],
)
def test_a_kernel_is_compiled_for_the_gpu_that_is_there(
    asked_of_torch: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capability: tuple[int, int] | None,
    architecture: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: capability is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    compile_cuda_extension("mine", "int x;")
    assert os.environ["TORCH_CUDA_ARCH_LIST"] == architecture
    flags = cpp_extension._get_cuda_arch_flags([])
    number = architecture.replace(".", "")
    assert flags == [f"-gencode=arch=compute_{number},code=sm_{number}"]


def test_an_architecture_that_is_set_stays(
    asked_of_torch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0+PTX")
    compile_cuda_extension("mine", "int x;")
    assert os.environ["TORCH_CUDA_ARCH_LIST"] == "8.0+PTX"


def test_thunderkittens_is_asked_for_before_anything_is_compiled(
    asked_of_torch: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THUNDERKITTENS_ROOT", str(tmp_path / "kittens"))
    with pytest.raises(FileNotFoundError, match="set THUNDERKITTENS_ROOT to a checkout"):
        compile_cuda_extension("mine", '#include "kittens.cuh"')
    assert not asked_of_torch
    (tmp_path / "kittens").mkdir()
    compile_cuda_extension("mine", '#include "kittens.cuh"')
    assert asked_of_torch["name"] == "mine"


# Each block of one GPU plays a rank: it writes a number, meets the others and reads theirs.
EXCHANGE = """
import triton
import triton.language as tl

from evaluator.compat.utils.triton_utils import blockwise_barrier, get_flat_bid, sync_threads


@triton.jit
def exchange(pads, numbers, seen, steps, W: tl.constexpr):
    rank = get_flat_bid()
    for step in range(steps):
        tl.store(numbers + rank, 100 * step + rank)
        sync_threads()
        blockwise_barrier(pads, 0, rank, W, "acq_rel")
        sync_threads()
        others = tl.arange(0, W)
        tl.store(seen + (step * W + rank) * W + others, tl.load(numbers + others))
        sync_threads()
        blockwise_barrier(pads, step, rank, W, sem="relaxed")
        sync_threads()
"""


@pytest.mark.gpu(1)
def test_blocks_of_different_ranks_meet_at_barriers(tmp_path: Path) -> None:
    ranks, steps = 8, 50
    path = tmp_path / "exchange.py"
    path.write_text(EXCHANGE)
    spec = importlib.util.spec_from_file_location("exchange", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pads = torch.zeros(ranks, steps * ranks, dtype=torch.int32, device="cuda")
    addresses = torch.tensor([pad.data_ptr() for pad in pads], device="cuda")
    numbers = torch.zeros(ranks, dtype=torch.int32, device="cuda")
    seen = torch.zeros(steps, ranks, ranks, dtype=torch.int32, device="cuda")
    module.exchange[(ranks,)](addresses, numbers, seen, steps, W=ranks)
    written = 100 * torch.arange(steps)[:, None, None] + torch.arange(ranks)
    assert torch.equal(seen.cpu(), written.expand(-1, ranks, -1).int())
    assert not pads.any()
