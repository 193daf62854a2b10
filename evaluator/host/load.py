"""Measures how busy this host is with others' work, by which every limit of time grows."""

from __future__ import annotations

import os

from evaluator.messages.job import Limits
from evaluator.messages.report import Phase

MOST_PATIENCE = 4.0
PROFILE_S = 10.0  # whatever the load: nothing but a drawing is lost
ANSWER_S = 300.0  # of the oracle to one command
ANSWERS_S = 1200.0  # to all of a run
REST_S = 600.0  # pauses that take long, and processes that are slow to start and to end
RUNS = 2  # one failure beside a submission may be a coincidence


def patience() -> float:
    """Return how many times as long as on an idle host anything may take now: processes that want
    to run, a processor, from 1 to MOST_PATIENCE."""
    waiting, *_ = os.getloadavg()
    return min(MOST_PATIENCE, max(1.0, waiting / (os.cpu_count() or 1)))


def limit_s(phase: Phase, limits: Limits, patient: float) -> float:
    """Return the seconds that ranks may take in a phase, with the patience of the run."""
    if phase is Phase.PROFILE:
        return PROFILE_S
    usual_s = {Phase.BUILD: limits.build_s, Phase.VERIFY: limits.verify_s}
    return patient * usual_s.get(phase, limits.timed_s)


def most_job_s(limits: Limits) -> float:
    """Return the seconds within which a job has ended by limits of its own, whatever its kernel
    does: all its runs, and one of the reference in its place."""
    return (RUNS + 1) * (MOST_PATIENCE * limits.phases_s + ANSWERS_S + REST_S)
