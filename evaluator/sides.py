"""Both sandboxed sides of a run: launched for a job, or ahead of it for one like the last."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from evaluator import ranks
from evaluator.host import Host, host_for
from evaluator.job import Job
from evaluator.ranks import Ranks
from evaluator.report import RankLog

SUBMISSION, REFERENCE = "submission", "reference"


@dataclass(frozen=True, kw_only=True)
class Sides:
    """`job` is what they were launched for; of it only what a sandbox is made of counts."""

    job: Job
    host: Host
    submission: Ranks
    reference: Ranks

    def fit(self, job: Job) -> bool:
        mine, wanted = self.job, job
        return (mine.device, mine.world_size, mine.limits) == (
            wanted.device,
            wanted.world_size,
            wanted.limits,
        )

    def end(self) -> tuple[RankLog, ...]:
        """Kill whatever is in them; what the submission's ranks printed."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.reference.kill)
            return self.submission.kill()


def launch(job: Job) -> Sides:
    """Start both sandboxes, which import torch; whoever launches keeps away from the processors
    that launch kernels, and so do they."""
    host = host_for(job)
    if host.cores:
        os.sched_setaffinity(0, chain.from_iterable(host.cores.helping))
    submission = ranks.launch(SUBMISSION, job, host, import_early=True)
    reference = ranks.launch(REFERENCE, job, host, import_early=has_idle_core())
    return Sides(job=job, host=host, submission=submission, reference=reference)


def has_idle_core() -> bool:
    """Whether the reference can import torch beside the submission without slowing it down. If not,
    it waits: most kernels that fail never need it."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    others = running - 2  # this process, which soon waits, and the submission's first
    return others < (os.cpu_count() or 1)
