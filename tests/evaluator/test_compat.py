"""What published kernels import, as far as it runs without a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from evaluator.compat.utils import parallelkittens_runtime as runtime


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
