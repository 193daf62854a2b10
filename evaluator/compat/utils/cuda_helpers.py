"""`compile_cuda_extension`, as published PKB kernels call it, on torch's `load_inline`."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType


def compile_cuda_extension(
    name: str,
    cuda_src: str,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
) -> ModuleType:
    """Compile CUDA C++ that carries its own PYBIND11_MODULE and import it.

    Raises RuntimeError with the compiler's output where it does not build.
    """
    from torch.utils.cpp_extension import load_inline

    module: ModuleType = load_inline(  # type: ignore[no-untyped-call]
        name=name,
        cpp_sources="",
        cuda_sources=cuda_src,
        extra_cuda_cflags=list(extra_cuda_cflags or ["-O3"]),
        extra_include_paths=list(extra_include_paths or []),
        extra_ldflags=list(extra_ldflags or []),
    )
    return module
