"""`evaluate` as a worker calls it: with a warm standby, which lives as long as the test session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from evaluator.evaluate import OnProgress, evaluate
from evaluator.judge.prefork import Standby
from evaluator.messages.job import Job
from evaluator.messages.report import Report

_TUNED = str(Path(__file__).with_name("tuned_judge.py"))


def _standby() -> Standby:
    if "PYTEST_XDIST_WORKER" in os.environ:
        return Standby(warm=True, program=(_TUNED, "sharing"))
    return Standby(warm=True)


STANDBY = _standby()
HURRIED = Standby(warm=True, program=(_TUNED, "hurried"))


@contextlib.contextmanager
def let_go() -> Iterator[None]:
    """Keeps no judge on leaving, with what serves it: so what is left is a submission's."""
    try:
        yield
    finally:
        STANDBY.let_go()
        HURRIED.let_go()


def judged(job: Job, on_progress: OnProgress | None = None, *, hurried: bool = False) -> Report:
    """The report; `hurried` is for kernels that pass, whatever their times."""
    return evaluate(job, on_progress, HURRIED if hurried else STANDBY)
