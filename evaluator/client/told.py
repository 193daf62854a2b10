"""Finds what the benchmark tells of itself: beside the client in a wheel, above it in a clone."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from .failures import Misused

_INSTALLED = __package__ == "pkb.client"
_ROOT = Path(__file__).resolve().parents[1 if _INSTALLED else 2]
CATALOGUE = _ROOT / "fixtures" / "problems.json"


def part(name: str) -> Any:
    """Return a module of the benchmark that needs no torch: `prompt` or `topology`. Raises Misused
    before Python 3.11."""
    if sys.version_info < (3, 11):
        raise Misused("Prompts need Python 3.11 or newer.", f"This is {sys.version.split()[0]}.")
    return importlib.import_module(f"pkb.problems.{name}" if _INSTALLED else f"problems.{name}")
