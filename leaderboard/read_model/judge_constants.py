"""Reads the judge's constants, which `python -m evaluator.facts` exports for the site."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

EXPORT = Path(settings.BASE_DIR) / "fixtures" / "judging.json"


@functools.cache
def judge_constants() -> Mapping[str, Any]:
    """Return what fixtures/judging.json holds, read once in a process."""
    found: dict[str, Any] = json.loads(EXPORT.read_text())
    return found
