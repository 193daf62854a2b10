"""Gives `compile_cuda_extension`, as published PKB kernels call it, on torch's `load_inline`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType

from evaluator.host.thunderkittens import thunderkittens_root
from evaluator.messages.needs import includes_thunderkittens

PUBLISHED_ARCHITECTURE = "9.0"


def compile_cuda_extension(
    name: str,
    cuda_src: str,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
) -> ModuleType:
    """Compile CUDA C++ that carries its own PYBIND11_MODULE and import it.

    Raises RuntimeError with the compiler's output where it does not build, and FileNotFoundError
    where it includes ThunderKittens and there is none.
    """
    from torch.utils.cpp_extension import load_inline

    root = thunderkittens_root()
    if includes_thunderkittens(cuda_src) and not root.is_dir():
        raise FileNotFoundError(
            f"the source includes ThunderKittens' headers, and there are none at {root}: "
            "set THUNDERKITTENS_ROOT to a checkout of ThunderKittens"
        )
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", _architecture())
    module: ModuleType = load_inline(  # type: ignore[no-untyped-call]
        name=name,
        cpp_sources="",
        cuda_sources=cuda_src,
        extra_cuda_cflags=["-O3", *(extra_cuda_cflags or [])],
        extra_include_paths=list(extra_include_paths or []),
        extra_ldflags=list(extra_ldflags or []),
        with_cuda=True,
    )
    return module


def _architecture() -> str:
    """Name that of the GPU here, with what only its generation has (`a`, since Hopper): all that
    compiles without compiles with it, and the binary is for this GPU alone."""
    import torch

    if not torch.cuda.is_available():
        return PUBLISHED_ARCHITECTURE
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}a" if major >= 9 else f"{major}.{minor}"
