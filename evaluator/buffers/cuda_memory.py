"""Shares GPU memory between processes by file descriptor: CUDA's virtual memory calls, by ctypes.

Descriptors of cuMemCreate cross namespaces, which handles of cudaIpc do not. The size of an
allocation is fixed: whoever holds a descriptor cannot shrink what others have mapped. Structures
and numbers are those of cuda.h (CUDA 11.2 or newer). The caller has made a device current. Every
function raises EvaluatorError where the driver refuses a call.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from functools import cache

from evaluator.messages.faults import EvaluatorError

_PINNED, _ON_DEVICE, _POSIX_FD, _READ_WRITE = 1, 1, 1, 3
_NO_FLAGS = c_ulonglong(0)
_MAPPED = c_uint(3)  # for every context, and with an address on the GPU


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("windows_only", c_void_p),
        ("flags", c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", c_int))


def create(device: int, nbytes: int) -> tuple[int, int]:
    """Allocate on a GPU; return a descriptor and the size in bytes, rounded up to whole pages."""
    properties = _Properties(_PINNED, _POSIX_FD, _Location(_ON_DEVICE, device))
    page = c_size_t()
    call_driver("cuMemGetAllocationGranularity", byref(page), byref(properties), c_int(0))
    size = -(-nbytes // page.value) * page.value
    handle, fd = c_ulonglong(), c_int(-1)
    call_driver("cuMemCreate", byref(handle), c_size_t(size), byref(properties), _NO_FLAGS)
    call_driver("cuMemExportToShareableHandle", byref(fd), handle, c_int(_POSIX_FD), _NO_FLAGS)
    call_driver("cuMemRelease", handle)  # the descriptor keeps the memory
    return fd.value, size


def map_fd(device: int, fd: int, size: int) -> int:
    """Map an allocation of `size` bytes into this process; return its address on the GPU."""
    handle, address = c_ulonglong(), c_ulonglong()
    call_driver("cuMemImportFromShareableHandle", byref(handle), c_void_p(fd), c_int(_POSIX_FD))
    none = c_size_t(0)
    call_driver("cuMemAddressReserve", byref(address), c_size_t(size), none, _NO_FLAGS, _NO_FLAGS)
    call_driver("cuMemMap", address, c_size_t(size), none, handle, _NO_FLAGS)
    access = _Access(_Location(_ON_DEVICE, device), _READ_WRITE)
    call_driver("cuMemSetAccess", address, c_size_t(size), byref(access), c_size_t(1))
    call_driver("cuMemRelease", handle)
    return address.value


def unmap(address: int, size: int) -> None:
    """Unmap what `map_fd` has mapped."""
    call_driver("cuMemUnmap", c_ulonglong(address), c_size_t(size))
    call_driver("cuMemAddressFree", c_ulonglong(address), c_size_t(size))


@cache
def register(address: int, nbytes: int) -> int:
    """Let the GPU reach host memory that begins with a page; return its address on the GPU."""
    found = c_ulonglong()
    call_driver("cuMemHostRegister_v2", c_void_p(address), c_size_t(nbytes), _MAPPED)
    call_driver("cuMemHostGetDevicePointer_v2", byref(found), c_void_p(address), c_uint(0))
    return found.value


@cache
def driver() -> ctypes.CDLL:
    """Load the GPU driver's library, once."""
    return ctypes.CDLL("libcuda.so.1")


def call_driver(name: str, *arguments: object) -> None:
    """Call the driver. Raises EvaluatorError with the number of its error."""
    status: int = getattr(driver(), name)(*arguments)
    if status:
        raise EvaluatorError(f"the GPU driver answered {name} with error {status}")
