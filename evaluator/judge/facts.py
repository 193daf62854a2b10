"""Exports the judge's constants as JSON: the site may know nothing of the judge but its messages.

`python -m evaluator.judge.facts` writes the file, and a test compares it with the code. Standard
library only.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluator.diagnosis import scan
from evaluator.messages.job import Device, Job, limits_of
from evaluator.messages.profile import Evidence, Tag
from evaluator.timing import interval, pace, roofline, timing

PATH = Path(__file__).parents[2] / "fixtures" / "judging.json"


def facts() -> dict[str, Any]:
    """Return the constants that the site explains, as JSON values."""
    return {
        "trials": Job.trials,
        "timing": {
            "timed_calls": pace.TIMED_CALLS,
            "round_calls": pace.ROUND_CALLS,
            "watched_of": pace.WATCHED_OF,
            "ahead_ms": pace.AHEAD_MS,
            "resamples": interval.RESAMPLES,
            "process_share": interval.PROCESS_SHARE,
            "noisy_spread": timing.NOISY_SPREAD,
            "noisy_drift": timing.NOISY_DRIFT,
            "agreement": timing.AGREEMENT,
            "serves_s": pace.SERVES_S,
            "series_calls": pace.ROUND_CALLS,
        },
        "limits": {device.value: asdict(limits_of(device)) for device in Device},
        "floors": {"margin": roofline.MARGIN, "fewer_flops": roofline.FEWER_FLOPS},
        "patterns": [flag for flag in scan.PATTERNS if flag.startswith("static:")],
        "mechanisms": [tag.value for tag in Tag],
        "evidence": [kind.value for kind in Evidence],
    }


def text() -> str:
    """Return them as the text of the file."""
    return json.dumps(facts(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
