"""What serves one run after another: the reference's ranks, the judge's own, and a sandbox that
waits for the next submission. Only that is ever a submission's, and of one alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator import ranks
from evaluator.host import Host, host_for
from evaluator.job import Job
from evaluator.ranks import Ranks
from evaluator.report import EvaluatorError

if TYPE_CHECKING:
    from evaluator.panel import Panel

SUBMISSION, REFERENCE = "submission", "reference"
# A process has a limit of processor time, and a leak a chance to grow.
MOST_RUNS = 200


@dataclass(kw_only=True)
class Staff:
    """`job` is what it was hired for; of it only what a sandbox is made of counts."""

    job: Job
    host: Host
    reference: Ranks
    panel: Panel
    waiting: Ranks | None
    runs: int = 0
    is_free: bool = True

    def fits(self, job: Job) -> bool:
        mine, wanted = self.job, job
        is_alike = (mine.device, mine.world_size, mine.limits) == (
            wanted.device,
            wanted.world_size,
            wanted.limits,
        )
        is_able = self.is_free and self.reference.is_idle and self.runs < MOST_RUNS
        return is_able and is_alike

    def admit(self) -> Ranks:
        """The next submission's sandbox. Where cores are many, the one after it gets one that has
        imported torch when it comes."""
        self.runs, self.is_free = self.runs + 1, False
        if self.waiting is not None and not self.waiting.sandbox.is_alive:
            self.waiting.kill()
            self.waiting = None
        admitted, self.waiting = self.prepare(), None
        if self.host.cores:
            self.prepare()
        return admitted

    def prepare(self) -> Ranks:
        """Have a sandbox import torch for the next submission, unless one has."""
        if self.waiting is None:
            with _helping(self.host):
                self.waiting = ranks.launch(SUBMISSION, self.job, self.host, import_early=True)
        return self.waiting

    def rest(self) -> None:
        """Forget the run. Who is still at work for it, or fails to, is of no more use."""
        if self.panel.is_idle and self.reference.is_idle:
            with contextlib.suppress(EvaluatorError):
                self.panel.end()
                self.is_free = True

    def close(self) -> None:
        """End all of it; the processors are everybody's again."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.panel.close)
            stack.callback(self.reference.kill)
            if self.waiting is not None:
                stack.callback(self.waiting.kill)
        if self.host.cores:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))


def hire(job: Job) -> Staff:
    """Start both sandboxes, which import torch, and then the judge's own ranks."""
    host = host_for(job)
    with _helping(host):
        waiting = ranks.launch(SUBMISSION, job, host, import_early=True)
        reference = ranks.launch(REFERENCE, job, host, import_early=has_idle_core())
        from evaluator.panel import Panel  # imports torch where no warm standby has

        panel = Panel(job.world_size, job.device, host)
    return Staff(job=job, host=host, reference=reference, panel=panel, waiting=waiting)


@contextlib.contextmanager
def _helping(host: Host) -> Iterator[None]:
    """Whoever launches keeps away from the processors that launch kernels, and so do those whom it
    launches; afterwards to the judge's own."""
    if host.cores:
        os.sched_setaffinity(0, chain.from_iterable(host.cores.helping))
    yield
    if host.cores:
        os.sched_setaffinity(0, {host.cores.judge})


def has_idle_core() -> bool:
    """Whether the reference can import torch beside the submission without slowing it down. If not,
    it waits: most kernels that fail never need it."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    others = running - 2  # this process, which soon waits, and the submission's first
    return others < (os.cpu_count() or 1)
