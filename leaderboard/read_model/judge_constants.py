"""Reads the judge's constants, which `python -m evaluator.judge.facts` exports for the site."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from django.conf import settings

from leaderboard.kit.json_types import JsonObject

EXPORT = Path(settings.BASE_DIR) / "fixtures" / "judging.json"


@functools.cache
def judge_constants() -> JsonObject:
    """Return what fixtures/judging.json holds, read once in a process."""
    found: JsonObject = json.loads(EXPORT.read_text())
    return found
