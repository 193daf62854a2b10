"""Has kernels judged on this host while a model waits, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

from evaluator.evaluate import Cancelled, evaluate
from evaluator.judge.prefork import PreforkServer
from evaluator.messages.faults import DirtyHost, EvaluatorError
from evaluator.messages.feedback import Feedback, feedback
from evaluator.messages.job import Backend, Device, Dtype, Job, Placement, limits_of
from evaluator.messages.report import Progress, Report

TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Practice:
    """Says how a kernel is tried: what a model may choose of a job."""

    problem: str
    backend: Backend
    world_size: int
    size: str
    dtype: Dtype
    device: Device
    placement: Placement = Placement.FULL


@dataclass(frozen=True, kw_only=True)
class Revision:
    """Holds a kernel, and which step of which attempt it is."""

    source: str
    attempt: int = 1
    step: int = 1


class KernelJudge(Protocol):
    """Finds out what a kernel is worth."""

    def judge(self, practice: Practice, revision: Revision) -> tuple[Feedback, float]:
        """Return what a model is shown, and the seconds it took. Raises EvaluatorError for our own
        faults, and Cancelled where the run is to end."""
        ...


class HostJudge:
    """Judges on this host. Every run draws its own secret, as ranked runs do: what a kernel learns
    of the inputs of one is of no use in another.

    One thread runs all of them, as judges die with the thread that started them. What fails by our
    own fault, as if a loaded host cannot take times, is tried again; then it is judged without
    times on processors, where nothing else changes by that.
    """

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._prefork = PreforkServer(warm=True)

    def judge(self, practice: Practice, revision: Revision) -> tuple[Feedback, float]:
        """Return the feedback and the seconds; see Judge."""
        return self.thread.submit(self._judge, practice, revision.source).result()

    def close(self) -> None:
        """End the processes that wait for a next run."""
        self.thread.submit(self._prefork.close).result()
        self.thread.shutdown()

    def _judge(self, practice: Practice, source: str) -> tuple[Feedback, float]:
        if self._is_over():
            raise Cancelled
        began = time.monotonic()
        job = Job(
            problem=practice.problem,
            source=source,
            backend=practice.backend,
            world_size=practice.world_size,
            size=practice.size,
            dtype=practice.dtype,
            device=practice.device,
            placement=practice.placement,
            limits=limits_of(practice.device),
        )
        return self._feedback(job), round(time.monotonic() - began, 3)

    def _feedback(self, job: Job) -> Feedback:
        """Return the report of a kernel; without times if this host cannot take any."""
        try:
            return feedback(self._report(job))
        except DirtyHost:
            raise
        except EvaluatorError:
            if job.device is not Device.CPU or job.placement is Placement.SHARED:
                raise
        untimed = replace(job, placement=Placement.SHARED)
        return feedback(evaluate(untimed, self._on_progress, self._prefork), is_too_busy=True)

    def _report(self, job: Job) -> Report:
        for _ in range(TRIES - 1):
            try:
                return evaluate(job, self._on_progress, self._prefork)
            except DirtyHost:
                raise
            except EvaluatorError:
                continue
        return evaluate(job, self._on_progress, self._prefork)

    def _on_progress(self, _: Progress) -> bool:
        return self._is_over()
