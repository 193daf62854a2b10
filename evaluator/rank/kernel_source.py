"""Puts a submission's files where Python and compilers find them, and loads its entry point."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch

from evaluator.messages.manifest import BadManifestError, manifest_of
from evaluator.messages.source_files import Part, parts_of
from evaluator.rank.builds import share_builds, uses_extensions
from evaluator.rank.calls import Solution
from evaluator.rank.failure_claim import CallFault

SCRATCH = Path(tempfile.gettempdir())
PACKAGE = "submission"


def load_entry(source: str) -> Solution:
    """Load a source and return its entry point. Raises CallFault, or what the source raises."""
    if uses_extensions(source):
        from torch.utils import cpp_extension

        share_builds(cpp_extension)
    if not torch.cuda.is_available():
        _do_without_gpu(source)
    parts = parts_of(source)
    module, name = _imported(parts) if parts else (_executed(source), "solution")
    solution = getattr(module, name, None)
    if not callable(solution):
        raise CallFault("missing_entry_point", "no_solution", f"the source defines no {name}()")
    return solution  # type: ignore[no-any-return]


def _executed(source: str) -> ModuleType:
    path = SCRATCH / f"rank{os.environ['RANK']}" / f"{PACKAGE}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return _run(PACKAGE, path)


def _imported(parts: Sequence[Part]) -> tuple[ModuleType, str]:
    """Return the module that the manifest names, and its function's name.

    The files are a package, so they may import each other by `from .other import f`. Its folder is
    the present one and comes last in Python's path, so `import other` and `load(sources=["x.cu"])`
    work as they do where their author runs them.
    """
    try:
        manifest = manifest_of(parts)
    except BadManifestError as error:
        raise CallFault("missing_entry_point", "no_solution", str(error)) from None
    root = _placed(parts)
    sys.path += [str(root.parent), str(root)]
    os.chdir(root)
    os.environ["NVCC_APPEND_FLAGS"] = " ".join(manifest.nvcc_options)
    module, _, name = manifest.entry.partition(":")
    return importlib.import_module(f"{PACKAGE}.{module}"), name


def _placed(parts: Sequence[Part]) -> Path:
    """Write the files, which nobody may change, to one folder for all ranks: the first of them to
    be done does. Compilers then see the same paths on every rank."""
    folder, own = SCRATCH / "kernel" / PACKAGE, SCRATCH / f"rank{os.environ['RANK']}" / PACKAGE
    for part in parts:
        path = own / part.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part.text)
        path.chmod(0o444)
    folder.parent.mkdir(exist_ok=True)
    try:
        own.rename(folder)
    except OSError:  # another rank's are there
        shutil.rmtree(own)
    return folder


def _run(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _do_without_gpu(source: str) -> None:
    """Let a submission's Triton kernels run on a processor, and its ranks share memory there."""
    os.environ["TRITON_INTERPRET"] = "1"
    if "_symmetric_memory" in source or "_SymmetricMemory" in source:
        from evaluator.rank.symmetric_memory import put_in_place

        put_in_place()
