"""Finds ThunderKittens' headers on this host, and whether a source needs them."""

from __future__ import annotations

import os
import re
from pathlib import Path

_HEADERS = re.compile(
    r"#\s*include\s*[<\"](?:kittens\.cuh|prototype\.cuh|pyutils/)|\bTKParallelTensor\b"
    r"|\bparallelkittens_runtime\b"
)


def needs_thunderkittens(source: str) -> bool:
    """Return whether a submission, or its CUDA source, includes ThunderKittens' headers."""
    return _HEADERS.search(source) is not None


def thunderkittens_root() -> Path:
    """Return where published ParallelKittens kernels look for ThunderKittens:
    THUNDERKITTENS_ROOT."""
    return Path(os.environ.get("THUNDERKITTENS_ROOT", "/opt/thunderkittens"))
