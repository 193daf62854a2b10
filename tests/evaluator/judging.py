"""`evaluate` as a worker calls it: with a warm standby, which lives as long as the test session."""

from __future__ import annotations

from pathlib import Path

from evaluator.evaluate import OnProgress, evaluate
from evaluator.job import Job
from evaluator.report import Report
from evaluator.standby import Standby

STANDBY = Standby(warm=True)
HURRIED = Standby(warm=True, program=(str(Path(__file__).with_name("hurried_judge.py")),))


def judged(job: Job, on_progress: OnProgress | None = None, *, hurried: bool = False) -> Report:
    """The report; `hurried` is for kernels that pass, whatever their times."""
    return evaluate(job, on_progress, HURRIED if hurried else STANDBY)
