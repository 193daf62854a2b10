"""Stands in for torch's symmetric memory where ranks have no GPU: files that all ranks map.

`torch.distributed._symmetric_memory` does all by a class of torch's C++ that knows GPUs only; here
is one with the same names. The address of a peer's buffer is one in this process, so what a Triton
kernel reads and writes there is the peer's memory. Barriers and signals go over gloo.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.distributed as dist

ALIGNMENT = 64
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class _Allocation:
    """Names a file with a buffer, and behind it a zeroed signal pad."""

    path: str
    buffer_bytes: int
    pad_bytes: int
    group_name: str | None

    @property
    def pad_begins(self) -> int:
        return -(-self.buffer_bytes // ALIGNMENT) * ALIGNMENT

    def mapped(self) -> torch.UntypedStorage:
        """Map it; the first to do so makes it."""
        nbytes = self.pad_begins + self.pad_bytes
        made: Any = torch.UntypedStorage.from_file(self.path, shared=True, nbytes=nbytes)
        return cast("torch.UntypedStorage", made)


# By the address at which its maker has mapped it.
_made: dict[int, tuple[_Allocation, dict[str, SymmetricMemory]]] = {}


class SymmetricMemory:
    """Holds a buffer and a signal pad of every rank of a group, all mapped by this one."""

    signal_pad_size = 2048
    multicast_ptr = 0
    offset = 0
    device = torch.device("cpu")

    def __init__(self, group_name: str, own: _Allocation, mapped: torch.UntypedStorage) -> None:
        group: Any = vars(dist.distributed_c10d)["_resolve_process_group"](group_name)
        self._group, self.rank, self.world_size = group, group.rank(), group.size()
        told: list[Any] = [None] * self.world_size
        dist.all_gather_object(told, own, group=group)
        self._parts: list[_Allocation] = told
        self._storages = [mapped if part == own else part.mapped() for part in told]
        self.buffer_size = own.buffer_bytes
        begins = [storage.data_ptr() for storage in self._storages]
        self.buffer_ptrs = begins
        self.signal_pad_ptrs = [at + part.pad_begins for at, part in zip(begins, told, strict=True)]
        self._tables = [torch.tensor(at) for at in (self.buffer_ptrs, self.signal_pad_ptrs)]
        self.buffer_ptrs_dev, self.signal_pad_ptrs_dev = (
            table.data_ptr() for table in self._tables
        )
        self._signals: list[Any] = []

    @staticmethod
    def empty_strided_p2p(  # noqa: PLR0917 - torch's own interface
        size: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        group_name: str | None = None,
        alloc_id: int | None = None,
    ) -> torch.Tensor:
        """Return a tensor in memory that ranks can share; `alloc_id` has no use here."""
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"there is no {device} here")
        name = f"symmetric_{os.getpid()}_{next(_numbers)}"
        own = _Allocation(
            path=os.path.join(tempfile.gettempdir(), name),
            buffer_bytes=max(1, math.prod(size) * dtype.itemsize),
            pad_bytes=SymmetricMemory.signal_pad_size,
            group_name=group_name,
        )
        storage = own.mapped()
        _made[storage.data_ptr()] = (own, {})
        return torch.empty(0, dtype=dtype).set_(storage, 0, tuple(size), tuple(stride))

    @staticmethod
    def rendezvous(tensor: torch.Tensor, group_name: str | None = None) -> SymmetricMemory:
        """Return the memory of the group's ranks that this tensor is the part of. Collective the
        first time."""
        if not SymmetricMemory.is_symm_mem_tensor(tensor):
            raise RuntimeError("the tensor was not allocated as symmetric memory")
        mapped = tensor.untyped_storage()
        own, known = _made[mapped.data_ptr()]
        name = group_name or own.group_name
        if name is None:
            raise RuntimeError("rendezvous needs a group")
        if name not in known:
            known[name] = SymmetricMemory(name, own, mapped)
        return known[name]

    def get_buffer(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0
    ) -> torch.Tensor:
        """Return a rank's buffer, from so many elements on."""
        return self._view(rank, sizes, dtype, storage_offset * dtype.itemsize)

    def get_remote_tensor(
        self, peer: int, sizes: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """Return a rank's buffer."""
        return self._view(peer, sizes, dtype, 0)

    def get_signal_pad(
        self,
        rank: int,
        sizes: Sequence[int] = (),
        dtype: torch.dtype | None = None,
        storage_offset: int = 0,
    ) -> torch.Tensor:
        """Return a rank's signal pad: all of it, in words of 32 bits, unless told otherwise."""
        kind, part = dtype or torch.uint32, self._parts[rank]
        shape = tuple(sizes) or (part.pad_bytes // kind.itemsize - storage_offset,)
        return self._view(rank, shape, kind, part.pad_begins + storage_offset * kind.itemsize)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Wait for all ranks of the group; on every channel alike."""
        dist.barrier(group=self._group)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Signal a rank."""
        token = torch.zeros(1, dtype=torch.uint8)
        sent = dist.isend(token, group=self._group, group_dst=dst_rank, tag=channel)
        self._signals = [one for one in self._signals if not one[0].is_completed()]
        self._signals.append((sent, token))

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Wait for a rank's signal."""
        token = torch.zeros(1, dtype=torch.uint8)
        dist.recv(token, group=self._group, group_src=src_rank, tag=channel)

    @staticmethod
    def memset32(tensor: torch.Tensor, offset: int, val: int, count: int = 1) -> torch.Tensor:
        """Set so many words of 32 bits from the given one on."""
        tensor.view(torch.int32)[offset : offset + count] = val
        return tensor

    @staticmethod
    def stream_write_value32(tensor: torch.Tensor, offset: int, val: int) -> torch.Tensor:
        """Set one word of 32 bits."""
        return SymmetricMemory.memset32(tensor, offset, val)

    @staticmethod
    def is_symm_mem_tensor(tensor: torch.Tensor) -> bool:
        """Return whether `empty_strided_p2p` made its memory."""
        return tensor.untyped_storage().data_ptr() in _made

    @staticmethod
    def has_multicast_support(device_type: object, device_idx: int) -> bool:
        """Return that there is none."""
        return False

    @staticmethod
    def set_group_info(group_name: str, rank: int, world_size: int, store: object) -> None:
        """Do nothing: the group itself is asked."""

    @staticmethod
    def set_backend(name: str) -> None:
        """Raise for all but the one that torch has without further libraries."""
        if name != "CUDA":
            raise RuntimeError(f"there is no {name} here")

    @staticmethod
    def get_backend(device: torch.device) -> str | None:
        """Return what `set_backend` takes."""
        return "CUDA"

    def _view(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, begins: int
    ) -> torch.Tensor:
        """Return so much of a rank's file, from a byte on. Raises RuntimeError beyond its end."""
        found = torch.empty(0, dtype=torch.uint8).set_(self._storages[rank])
        ends = begins + math.prod(sizes) * dtype.itemsize
        if ends > found.numel():
            raise RuntimeError(f"{ends} bytes of a symmetric memory that has {found.numel()}")
        view: torch.Tensor = found[begins:ends].view(dtype).view(tuple(sizes))
        return view


def put_in_place() -> None:
    """Have `torch.distributed._symmetric_memory` use this one, and torch's C++ module offer it."""
    from torch._C import _distributed_c10d
    from torch.distributed import _symmetric_memory

    for module in (_symmetric_memory, _distributed_c10d):
        vars(module)["_SymmetricMemory"] = SymmetricMemory
