"""Finds what the benchmark tells of itself: beside the client in a wheel, above it in a clone."""

from __future__ import annotations

import importlib
from typing import Any

_INSTALLED = __package__ == "pkb.client"


def part(name: str) -> Any:
    """Return a module of the benchmark that needs no torch: `prompt` or `topology`.

    They need Python 3.11.
    """
    return importlib.import_module(f"pkb.problems.{name}" if _INSTALLED else f"problems.{name}")
