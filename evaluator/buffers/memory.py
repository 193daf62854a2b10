"""Maps the memory of a slab, shared by descriptor: a sealed memfd, or cuMem on a GPU."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field

import torch

from evaluator.buffers import cuda_memory
from evaluator.buffers.control_page import sealed_memfd


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Holds mapped memory. Tensors on it have storages of their own, which end where they end."""

    device: torch.device
    nbytes: int
    address: int = 0
    mapped: mmap.mmap | None = field(default=None, repr=False)

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor on the bytes from `offset` on, in bytes."""
        count = torch.Size(shape).numel()
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self.device)
        if self.mapped is not None:
            flat = torch.frombuffer(self.mapped, dtype=dtype, count=count, offset=offset)
        else:
            region = _Region(self.address + offset, count * dtype.itemsize)
            flat = torch.as_tensor(region, device=self.device).view(dtype)
        return flat.view(shape)

    @property
    def everything(self) -> torch.Tensor:
        """Return all bytes: uint8, [nbytes]."""
        return self.tensor(0, (self.nbytes,), torch.uint8)


class _Region:
    """Describes bytes on a GPU, as torch takes them over without a copy."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def create(device: torch.device, nbytes: int) -> tuple[int, Memory]:
    """Make a fresh slab of at least `nbytes`; return the descriptor by which another process maps
    it, and the slab."""
    if device.type == "cuda":
        fd, nbytes = cuda_memory.create(device.index, nbytes)
    else:
        fd = sealed_memfd("slab", nbytes)
    return fd, _map(device, fd, nbytes)


def open_fd(device: torch.device, fd: int, nbytes: int) -> Memory:
    """Map a slab that another process made; closes the descriptor."""
    try:
        return _map(device, fd, nbytes)
    finally:
        os.close(fd)


def close(slab: Memory) -> None:
    """Unmap a slab on whose tensors nobody works any more."""
    if slab.mapped is None:
        torch.cuda.synchronize(slab.device)
        cuda_memory.unmap(slab.address, slab.nbytes)


def _map(device: torch.device, fd: int, nbytes: int) -> Memory:
    if device.type == "cuda":
        address = cuda_memory.map_fd(device.index, fd, nbytes)
        return Memory(device=device, nbytes=nbytes, address=address)
    return Memory(device=device, nbytes=nbytes, mapped=mmap.mmap(fd, nbytes))
