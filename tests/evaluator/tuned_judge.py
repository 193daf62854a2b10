"""Forks judges tuned for tests: `python tuned_judge.py <tuning>` and what prefork takes."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from evaluator.diagnosis import watch
from evaluator.host.cores import Cores
from evaluator.host.host import MULTICAST_OFF, Host, host_for
from evaluator.judge import phases, pool, prefork, process
from evaluator.judge.run_context import RunContext
from evaluator.judge.timed_phase import time_both
from evaluator.messages.faults import EvaluatorError, Survivors
from evaluator.messages.job import Device, Job
from evaluator.messages.report import RankLog
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import pace, timing
from evaluator.timing.timing import Samples


def hurried() -> None:
    """Warms up and times less, for kernels whose times nobody reads; makes nothing for a next run
    that may not come."""
    process.PREPARE_AFTER_S = 3600.0
    pace.WARMUP_CALLS = 32
    pace.TIMED_CALLS = 64
    pace.PACES[Device.CPU] = replace(pace.PACES[Device.CPU], least_batches=1)
    pace.MIN_TIMED_S = 0.0
    timing.SPREAD_ROUNDS = 100  # what takes no time is judged all the same


def sharing() -> None:
    """Leaves the other processor to the test beside it: most kernels never need the reference."""
    pool.has_idle_core = lambda: False


def watchful() -> None:
    """Sees soon that ranks stand still."""
    watch.LOOK_EVERY_S, watch.STANDSTILL_S = 0.4, 2.0
    sharing()
    hurried()


def haunted() -> None:
    """Finds that processes of a submission outlive their end, which they do not."""
    hurried()
    kill = RankGroup.kill

    def kill_in_vain(self: RankGroup) -> tuple[RankLog, ...]:
        logs = kill(self)
        if self.side == pool.SUBMISSION and self.is_started:
            self.logs = LogCollector(0)
            raise Survivors("they are still there")
        return logs

    RankGroup.kill = kill_in_vain  # type: ignore[method-assign]


def unlucky() -> None:
    """Fails once beside a submission."""
    hurried()

    def fail(context: RunContext) -> Samples:
        vars(phases)["time_both"] = time_both
        raise EvaluatorError("bad luck")

    vars(phases)["time_both"] = fail


def broken() -> None:
    """Fails always, with a submission or without."""
    hurried()

    def fail(side: RankGroup, task: object) -> None:
        raise EvaluatorError("no reference at all")

    RankGroup.load = fail  # type: ignore[assignment]


def impatient() -> None:
    """Lets go soon whoever serves runs."""
    process.PREPARE_AFTER_S, process.IDLE_S = 0.1, 0.5


def unhurried() -> None:
    """Has the next submission's sandbox early, and keeps it."""
    process.PREPARE_AFTER_S = 0.1
    sharing()


def spacious() -> None:
    """Divides processors among ranks, however few there are."""
    hurried()
    pool.host_for = _with_cores  # type: ignore[attr-defined]


def with_device() -> None:
    """Has sandboxes as on a host with GPUs, on which NVLink multicast is off."""
    hurried()
    told = vars(Host)["settings"]
    everywhere = property(lambda host: {**told.fget(host), **MULTICAST_OFF})
    for name, value in {"settings": everywhere, "device_files": ["/dev/null"]}.items():
        setattr(Host, name, value)


def _with_cores(job: Job) -> Host:
    everywhere = tuple(sorted(os.sched_getaffinity(0)))
    each = (everywhere[0],) * job.world_size
    helping = (everywhere,) * job.world_size
    cores = Cores(judge=everywhere[0], watching=each, launching=each, helping=helping)
    return replace(host_for(job), cores=cores)


TUNINGS = {
    f.__name__: f
    for f in (
        hurried,
        sharing,
        watchful,
        haunted,
        unlucky,
        broken,
        impatient,
        unhurried,
        spacious,
        with_device,
    )
}

if __name__ == "__main__":
    TUNINGS[sys.argv[1]]()
    prefork.main(int(sys.argv[2]), *sys.argv[3:])
