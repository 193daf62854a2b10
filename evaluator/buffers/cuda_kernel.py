"""Compiles and launches small CUDA kernels of our own by ctypes.

The judge compiles once with the NVRTC that comes with torch; a rank only loads what it is given.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint, c_ulonglong, c_void_p
from functools import cache
from pathlib import Path

import torch

from evaluator.buffers.cuda_memory import call_driver, driver
from evaluator.messages.faults import EvaluatorError


@cache
def compiled(source: str, device: torch.device) -> str:
    """Return the PTX of a source without includes, for GPUs like this one. Raises EvaluatorError
    where NVRTC refuses it."""
    program, size = c_void_p(), c_size_t()
    major, minor = torch.cuda.get_device_capability(device)
    options = (c_char_p * 1)(f"--gpu-architecture=compute_{major}{minor}".encode())
    _call_compiler("Create", byref(program), source.encode(), None, 0, None, None)
    _call_compiler("Compile", program, 1, options)
    _call_compiler("GetPTXSize", program, byref(size))
    text = ctypes.create_string_buffer(size.value)
    _call_compiler("GetPTX", program, text)
    _call_compiler("Destroy", byref(program))
    return text.value.decode()


@cache
def load(ptx: str, name: str) -> c_void_p:
    """Load a kernel into this process' context. Raises EvaluatorError where the driver refuses
    it."""
    module, function = c_void_p(), c_void_p()
    call_driver("cuModuleLoadData", byref(module), ptx.encode())
    call_driver("cuModuleGetFunction", byref(function), module, name.encode())
    return function


class KernelLaunch:
    """Launches a kernel on a GPU's current stream, again and again, with what `words` hold then.

    They are the kernel's only argument, a structure of unsigned numbers of 64 bits. All that can be
    done before is done before: launches are timed. `kept` is what has to live as long.
    """

    def __init__(self, kernel: c_void_p, *, words: int, block: int, device: int) -> None:
        self.words = (c_ulonglong * words)()
        self.kept: object = None
        self._device = device
        self._arguments = (c_void_p * 1)(ctypes.addressof(self.words))
        one = c_uint(1)
        self._kernel, self._shape = kernel, (one, one, c_uint(block), one, one, c_uint(0))
        self._call, self._stream = driver().cuLaunchKernel, torch._C._cuda_getCurrentRawStream

    def __call__(self, grid: c_uint) -> None:
        """Launch so many blocks. Raises EvaluatorError where the driver refuses it."""
        stream = c_void_p(self._stream(self._device))
        if status := self._call(self._kernel, grid, *self._shape, stream, self._arguments, None):
            raise EvaluatorError(f"the GPU driver answered cuLaunchKernel with error {status}")


@cache
def _compiler() -> ctypes.CDLL:
    """Load what torch itself compiles with: its library depends on NVRTC, and brings its names."""
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"))


def _call_compiler(name: str, *arguments: object) -> None:
    full = f"nvrtc{name}" if name.startswith("Get") else f"nvrtc{name}Program"
    status: int = getattr(_compiler(), full)(*arguments)
    if status:
        raise EvaluatorError(f"NVRTC answered {full} with error {status}")
