"""Lets kernels that compute the index of their GPU find it where every rank has the same.

Each rank sees one GPU, number 0. On a full host rank 2 may call it `cuda:2`: here that name means
the only GPU. Not reached are device indices inside CUDA sources (`cudaSetDevice(rank)`), threads
that a kernel starts, and what compares `tensor.device.index` with a rank.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NAMED = re.compile(r"cuda:\d+")
_INDICES = re.compile(
    r"\bset_device\b|cuda:|[\"']cuda[\"']\s*,|\.cuda\(\s*\w|\bdevice_count\b|\bLOCAL_RANK\b"
    r"|\bcuda\.device\(|\bcan_device_access_peer\b|\bdevice\s*=\s*\w*rank|\.to\(\s*\w*rank"
)


def names_devices(source: str) -> bool:
    """Return whether a source may name GPUs by index, so that `install` is worth its time."""
    return _INDICES.search(source) is not None


def install(world_size: int) -> None:
    """Have every index of a GPU mean the first, in this thread and for good."""
    OnlyGpu().__enter__()  # type: ignore[no-untyped-call]
    cuda: Any = torch.cuda
    for module in [own for name, own in sys.modules.items() if name.startswith("torch.cuda")]:
        if (found := getattr(module, "_get_device_index", None)) is not None:
            vars(module)["_get_device_index"] = _first_of(found)
    cuda.device_count = lambda: world_size
    cuda.can_device_access_peer = lambda device, peer_device: True


class OnlyGpu(TorchFunctionMode):
    """Replaces GPUs by the first one in all that is handed to torch."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = [_first(value) for value in args]
        name = getattr(func, "__name__", "")
        if name in {"cuda", "to"} and len(given) > 1 and type(given[1]) is int:
            given[1] = 0
        named = {key: _first(value) for key, value in (kwargs or {}).items()}
        if type(named.get("device")) is int:
            named["device"] = 0
        if func is torch.device and given[:1] == ["cuda"] and len(given) > 1:
            given[1] = 0
        if func is torch.device and "index" in named:
            named["index"] = 0
        return func(*given, **named)


def _first(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda" and value.index:
        return torch.device("cuda", 0)
    if isinstance(value, str) and _NAMED.fullmatch(value):
        return "cuda:0"
    return value


def _first_of(index_of: Callable[..., int]) -> Callable[..., int]:
    def first_index(*args: Any, **kwargs: Any) -> int:
        return min(0, index_of(*args, **kwargs))  # a negative one means none

    return first_index
