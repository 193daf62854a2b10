"""`evaluate` as a worker calls it: with a warm prefork, which lives as long as the test session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.evaluate import OnProgress, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.job import Job
from evaluator.messages.report import Report
from tests.evaluator.tuned_judge import VARIATION

_TUNED = str(Path(__file__).with_name("tuned_judge.py"))
_VARIED = str(Path(__file__).with_name("varied_judge.py"))
_IN_COMPANY = "PYTEST_XDIST_WORKER" in os.environ

PREFORK = PreforkServer(warm=True, program=(_TUNED, "sharing" if _IN_COMPANY else "unprepared"))
HURRIED = PreforkServer(warm=True, program=(_TUNED, "hurried"))
VARIED = PreforkServer(warm=True, program=(_VARIED,))


@contextlib.contextmanager
def end_kept() -> Iterator[None]:
    """Keeps no judge on leaving, with what serves it: so what is left is a submission's."""
    try:
        yield
    finally:
        PREFORK.end_kept()
        HURRIED.end_kept()


def judged(job: Job, on_progress: OnProgress | None = None, *, hurried: bool = False) -> Report:
    """The report; `hurried` is for kernels that pass, whatever their times."""
    return evaluate(job, on_progress, HURRIED if hurried else PREFORK)


def judged_by(variation: str, job: Job) -> Report:
    """The report of a judge of its own: tuned for tests, or without a defence."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIATION, variation)
        try:
            return evaluate(job, prefork=VARIED)
        finally:
            VARIED.end_kept()
