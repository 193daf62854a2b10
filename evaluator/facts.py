"""Exports the judge's constants as JSON: the site may know nothing of the judge but its messages.

`python -m evaluator.facts` writes the file, and a test compares it with the code. Standard library
only.
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

PATH = Path(__file__).parents[1] / "fixtures" / "judging.json"


def facts() -> dict[str, Any]:
    """Return the constants that the site explains, as JSON values."""
    return {
        "trials": Job.trials,
        "timing": {
            "warmup_calls": pace.WARMUP_CALLS,
            "timed_calls": pace.TIMED_CALLS,
            "least_timed_s": pace.MIN_TIMED_S,
            "least_share": interval.LEAST_SHARE,
            "resamples": interval.RESAMPLES,
            "process_share": interval.PROCESS_SHARE,
            "merged_ratio": timing.MERGED_CALLS_RATIO,
            "merged_us": timing.MERGED_CALLS_US,
            "only_together_us": timing.ONLY_TOGETHER_US,
            "single_calls": pace.SINGLE_CALLS,
            "lock_places": timing.LOCK_PLACES,
            "locked_words": timing.LOCKED_WORDS,
            "noisy_spread": timing.NOISY_SPREAD,
            "noisy_drift": timing.NOISY_DRIFT,
            "disturbed_ratio": timing.DISTURBED_RATIO,
            "alone_rounds": pace.ALONE_ROUNDS,
        },
        "paces": {
            device.value: {
                "many_calls": own.many_calls,
                "least_bursts": own.least_batches,
                "most_timed_s": own.most_timed_s,
            }
            for device, own in pace.PACES.items()
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
