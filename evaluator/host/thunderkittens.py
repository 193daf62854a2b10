"""Finds ThunderKittens' headers on this host."""

from __future__ import annotations

import os
from pathlib import Path


def thunderkittens_root() -> Path:
    """Return where published ParallelKittens kernels look for ThunderKittens:
    THUNDERKITTENS_ROOT."""
    return Path(os.environ.get("THUNDERKITTENS_ROOT", "/opt/thunderkittens"))
