"""Forks judges tuned for tests: `python tuned_judge.py <tuning>` and what standby takes."""

from __future__ import annotations

import sys
from dataclasses import replace

from evaluator import sides, standby, timing
from evaluator.job import Device


def hurried() -> None:
    """Warms up and times less, for kernels whose times nobody reads."""
    timing.WARMUP_CALLS = 32
    timing.TIMED_CALLS = 64
    timing.PACES[Device.CPU] = replace(timing.PACES[Device.CPU], least_bursts=1)
    timing.MIN_TIMED_S = 0.0


def sharing() -> None:
    """Leaves the other processor to the test beside it: most kernels never need the reference."""
    sides.has_idle_core = lambda: False


TUNINGS = {"hurried": hurried, "sharing": sharing}

if __name__ == "__main__":
    TUNINGS[sys.argv[1]]()
    standby.main(int(sys.argv[2]), *sys.argv[3:])
