"""Keeps what serves one run after another: the oracle's ranks, and sandboxes that wait for a run.

A submission's is always new. So is the reference's where cores are many: a process that has served
many runs launches kernels more slowly than a new one. Where they are few it serves the next run,
too, as torch takes long to import there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.host.host import Host, host_for
from evaluator.messages.faults import EvaluatorError, Fault
from evaluator.messages.job import Device, Job, Placement
from evaluator.sandbox import side_launch
from evaluator.sandbox.rank_group import RankGroup

if TYPE_CHECKING:
    from evaluator.oracle.group import OracleGroup

SUBMISSION, REFERENCE = "submission", "reference"
# A process has a limit of processor time, and a leak a chance to grow.
MOST_RUNS = 200


@dataclass(kw_only=True)
class WorkerPool:
    """Holds the processes of a judge. `job` is what they were started for; of it only what a
    sandbox is made of counts. Of the sides in `waiting` a sandbox imports torch for the next run.
    """

    job: Job
    host: Host
    reference: RankGroup
    oracle: OracleGroup
    waiting: dict[str, RankGroup] = field(default_factory=dict)
    runs: int = 0
    is_free: bool = True

    def fits(self, job: Job) -> bool:
        """Return whether these processes can serve the job."""
        mine, wanted = self.job, job
        is_alike = (mine.device, mine.placement, mine.world_size, mine.limits) == (
            wanted.device,
            wanted.placement,
            wanted.world_size,
            wanted.limits,
        )
        is_able = self.is_free and self.reference.is_idle and self.runs < MOST_RUNS
        return is_able and is_alike

    def acquire(self) -> RankGroup:
        """Return the next submission's sandbox. Where cores are many, or nothing is timed, the run
        after it gets sandboxes that have imported torch when it comes."""
        self.runs, self.is_free = self.runs + 1, False
        acquired = self._next(SUBMISSION)
        if self.host.cores or self.job.placement is Placement.SHARED:
            self.prepare()
        return acquired

    def prepare(self) -> None:
        """Have sandboxes import torch for the next run, unless some have."""
        for side in (SUBMISSION, REFERENCE) if self.host.cores else (SUBMISSION,):
            if side not in self.waiting:
                self.waiting[side] = _launch(side, self.job, self.host)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Stop what gets ready for the next run while the block runs, so that it takes nothing from
        who is timed. Raises EvaluatorError where it does not stop."""
        with contextlib.ExitStack() as stops:
            for side in self.waiting.values():
                if side.sandbox.is_alive:
                    try:
                        stops.enter_context(side.sandbox.pauser.anew().stopped())
                    except Fault as fault:
                        raise EvaluatorError(f"a sandbox for the next run: {fault}") from fault
            yield

    def release(self) -> None:
        """Forget the run. What is still at work for it, or fails to forget, is of no more use."""
        if self.host.cores and self.reference.is_started:
            self.reference.kill()
            self.reference = self._next(REFERENCE)
        if self.oracle.is_idle and self.reference.is_idle:
            with contextlib.suppress(EvaluatorError):
                self.oracle.end()
                self.is_free = True

    def close(self) -> None:
        """End all of it; the processors are everybody's again."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.oracle.close)
            for own in (self.reference, *self.waiting.values()):
                stack.callback(own.kill)
        if self.host.cores:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))

    def _next(self, side: str) -> RankGroup:
        """Take the sandbox that waits, or a new one if none does any more."""
        found = self.waiting.pop(side, None)
        if found is not None and not found.sandbox.is_alive:
            found.kill()
            found = None
        return found or _launch(side, self.job, self.host)


def start_pool(job: Job) -> WorkerPool:
    """Start both sandboxes, which import torch, and then the judge's own ranks."""
    host = host_for(job)
    submission = _launch(SUBMISSION, job, host)
    is_timed = job.placement is Placement.FULL  # else the reference is but a last resort
    reference = _launch(REFERENCE, job, host, import_early=is_timed and has_idle_core())
    with _helping(host):
        from evaluator.oracle.group import (
            OracleGroup,
        )  # imports torch where no warm prefork server has

        oracle = OracleGroup(job.world_size, job.device, host)
    waiting = {SUBMISSION: submission}
    return WorkerPool(job=job, host=host, reference=reference, oracle=oracle, waiting=waiting)


def _launch(side: str, job: Job, host: Host, *, import_early: bool = True) -> RankGroup:
    with _helping(host):
        for_kernels = side == SUBMISSION and job.device is Device.CUDA
        return side_launch.launch(
            side, job, host, import_early=import_early, for_kernels=for_kernels
        )


@contextlib.contextmanager
def _helping(host: Host) -> Iterator[None]:
    """Keep whoever launches away from the processors that launch kernels, and so those whom it
    launches; afterwards on the judge's own."""
    if host.cores:
        os.sched_setaffinity(0, chain.from_iterable(host.cores.helping))
    yield
    if host.cores:
        os.sched_setaffinity(0, {host.cores.judge})


def has_idle_core() -> bool:
    """Return whether the reference can import torch beside the submission without slowing it down.
    If not, it waits: most kernels that fail never need it."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    others = running - 2  # this process, which soon waits, and the submission's first
    return others < (os.cpu_count() or 1)
