"""Builds an extension once for all ranks, with the headers that it uses instead of all of torch's.

Runs in the submission's processes: it makes honest submissions quick and protects nothing. torch's
module is handed in, so that reading this one needs no torch.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import functools
import hashlib
import inspect
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

COMPAT = Path(__file__).resolve().parents[1] / "compat"
HEADERS = COMPAT / "include"
PARALLEL_NVCC = COMPAT / "parallel_nvcc.py"
BUILD_FAILED = "Error building extension"  # how torch begins what it says of a compiler's error

_EXTENSIONS = re.compile(r"\bcpp_extension\b|\bcuda_helpers\b")
# What a build looks at besides its arguments.
_SETTINGS = ("TORCH_CUDA_ARCH_LIST", "CC", "CXX", "CUDA_HOME", "PYTORCH_NVCC")
_NO_INFLUENCE = {"build_directory", "verbose", "keep_intermediates"}

_QUALIFIED = re.compile(r"\b(?:torch|at)::(\w+)")
_CALLED = re.compile(r"\b(\w+)\s*\(")
_UNQUALIFIED = re.compile(
    r"\busing\s+namespace\s+(?:torch|at)\s*;|\bnamespace\s+\w+\s*=\s*(?:torch|at)\s*;"
)
# Parts of torch's C++ frontend that our headers leave out: not worth an attempt without them.
_FRONTEND = re.compile(
    r"\btorch::(?:nn|optim|jit|data|serialize|autograd|indexing|special|fft|linalg)\b"
    r"|<torch/(?:script|nn|optim|jit|data|serialize|autograd|special|fft|linalg)[./]"
)


def uses_extensions(source: str) -> bool:
    """Return whether a submission may build an extension, so that `share_builds` is worth its
    import."""
    return _EXTENSIONS.search(source) is not None


def share_builds(cpp_extension: Any) -> None:
    """Let `load` and `load_inline` of `torch.utils.cpp_extension` compile once for all processes
    that share TORCH_EXTENSIONS_DIR; where that fails, all of them raise the compiler's error."""
    for load in (cpp_extension.load, cpp_extension.load_inline):
        setattr(cpp_extension, load.__name__, _shared(cpp_extension, load))


def _shared(cpp_extension: Any, load: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(load)

    @functools.wraps(load)
    def load_once(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        wanted = bound.arguments
        if wanted.get("is_standalone"):
            return load(*args, **kwargs)
        folder = _root(cpp_extension) / _key(wanted)
        built, failure = folder / "built", folder / "failure"
        with _alone_in(folder):
            if failure.exists():
                raise RuntimeError(failure.read_text())
            if not built.exists():
                return _build(cpp_extension, load, wanted, folder)
        place = str(folder / built.read_text())
        return cpp_extension._import_module_from_library(
            wanted["name"], place, wanted["is_python_module"]
        )

    return load_once


def _root(cpp_extension: Any) -> Path:
    return Path(os.environ.get("TORCH_EXTENSIONS_DIR") or cpp_extension.get_default_build_root())


def _key(wanted: Mapping[str, Any]) -> str:
    arguments = sorted((k, repr(v)) for k, v in wanted.items() if k not in _NO_INFLUENCE)
    settings = [os.environ.get(name) for name in _SETTINGS]
    return hashlib.sha256(repr((arguments, settings, _text(wanted))).encode()).hexdigest()[:16]


def _text(wanted: Mapping[str, Any]) -> str:
    """Return all source text, given inline (`load_inline`) or as files (`load`)."""
    inline = [*_listed(wanted.get("cpp_sources")), *_listed(wanted.get("cuda_sources"))]
    files = [Path(path).read_text(errors="replace") for path in _listed(wanted.get("sources"))]
    return "\n".join([*inline, *files])


def _listed(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given or [])


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep every other process out of the folder; whoever dies in there leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    with Path(folder, "turn").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _build(
    cpp_extension: Any, load: Callable[..., Any], wanted: Mapping[str, Any], folder: Path
) -> Any:
    """Build and load the module. What does not build with few headers gets all of torch's and plain
    nvcc: it is built or refused as torch alone would do it."""

    def attempt(place: Path, includes: list[str]) -> Any:
        arguments = copy.deepcopy(dict(wanted))
        arguments["build_directory"] = str(place)
        arguments["extra_include_paths"] = includes + _listed(wanted["extra_include_paths"])
        if "use_pch" in arguments:
            arguments["use_pch"] = False  # they would go to torch's own folder: read-only here
        # Folders tell versions apart here, not names: each is its name's first.
        cpp_extension.JIT_EXTENSION_VERSIONER.entries.pop(wanted["name"], None)
        module = load(**arguments)
        Path(folder, "built").write_text(place.name)
        return module

    source = _text(wanted)
    if not _FRONTEND.search(source):
        few = _emptied(folder / "few")
        operators = Path(cpp_extension.include_paths()[0], "ATen", "ops")
        Path(few, "named_in_source.h").write_text(named_in_source(source, operators))
        with (
            contextlib.suppress(RuntimeError, ImportError, OSError),
            _setting("PYTORCH_NVCC", _nvcc(cpp_extension)),
        ):
            return attempt(few, [str(few), str(HEADERS)])
        shutil.rmtree(few)
    try:
        return attempt(_emptied(folder / "all"), [])
    except RuntimeError as error:
        if BUILD_FAILED in str(error):
            Path(folder, "failure").write_text(str(error), errors="replace")
        raise


def _emptied(folder: Path) -> Path:
    """Remove what somebody left who died at this build; return the empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def named_in_source(source: str, operators: Path) -> str:
    """Return a header with the operators that the source calls; `operators` is torch's folder of
    them."""
    names = set(_QUALIFIED.findall(source))
    if _UNQUALIFIED.search(source):
        names.update(_CALLED.findall(source))
    called = sorted(name for name in names if Path(operators, f"{name}.h").is_file())
    lines = ["#pragma once", "#define AT_PER_OPERATOR_HEADERS"]
    if "TORCH_LIBRARY" in source:
        lines.append("#define LIBRARY_IS_NAMED")
    if called or "TORCH_LIBRARY" in source:
        lines.append("#define OPERATORS_ARE_NAMED")
        lines += [f"#include <ATen/{name}.h>" for name in ("DeviceGuard", "TensorOperators")]
    lines += [f"#include <ATen/ops/{name}.h>" for name in called]
    return "\n".join(lines) + "\n"


def _nvcc(cpp_extension: Any) -> str | None:
    """Return the command that runs nvcc's passes side by side; None where there is no nvcc, or the
    submission has chosen its own."""
    home = cpp_extension.CUDA_HOME
    if home is None or "PYTORCH_NVCC" in os.environ:
        return None
    return shlex.join([sys.executable, str(PARALLEL_NVCC), str(Path(home, "bin", "nvcc"))])


@contextlib.contextmanager
def _setting(name: str, value: str | None) -> Iterator[None]:
    if value is None:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
