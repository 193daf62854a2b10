"""Forks judges tuned for tests: `python tuned_judge.py <tuning>` and what prefork takes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evaluator.diagnosis import watch
from evaluator.host.cgroup import Leaf
from evaluator.host.cores import Cores
from evaluator.host.host import MULTICAST_OFF, Host, host_for
from evaluator.judge import phases, pool, prefork, process, run_context, timed_phase
from evaluator.judge.run_context import RunContext, TimedBatch
from evaluator.judge.timed_phase import time_both
from evaluator.messages.faults import EvaluatorError, Fault, Survivors
from evaluator.messages.job import Device, Job
from evaluator.messages.report import Phase, RankLog, Verdict
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import pace, timing
from evaluator.timing.timing import Samples
from tests.evaluator.mutating import launch_after

if TYPE_CHECKING:
    from evaluator.oracle.group import OracleGroup

VARIATION = "PKB_TEST_VARIATION"
UNFREED_BYTES = 256 << 20


def unprepared() -> None:
    """Makes nothing for a next run that may not come."""
    process.PREPARE_AFTER_S = 3600.0


def brisk() -> None:
    """Warms up and times less."""
    unprepared()
    pace.WARMUP_CALLS, pace.TIMED_CALLS = 32, 64
    pace.PACES[Device.CPU] = replace(pace.PACES[Device.CPU], least_batches=1)
    pace.MIN_TIMED_S = 0.0
    timing.SPREAD_ROUNDS = 100  # what takes no time is judged all the same


def hurried() -> None:
    """Times as little as can be, for kernels whose times nobody reads."""
    brisk()
    pace.WARMUP_CALLS, pace.TIMED_CALLS = 16, 16
    timed_phase.SINGLE_CALLS = 4


def sharing() -> None:
    """Leaves the other processor to the test beside it: most kernels never need the reference."""
    unprepared()
    pool.has_idle_core = lambda: False


def watchful() -> None:
    """Sees soon that ranks stand still."""
    watch.LOOK_EVERY_S, watch.STANDSTILL_S = 0.6, 4.0
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


def unfit() -> None:
    """Fails on the inputs of its first two runs, with a submission or without."""
    hurried()
    seen: list[bytes] = []

    def fail(context: RunContext) -> Samples:
        seen.append(context.oracle._secret)
        if seen[-1] in seen[:2]:
            raise EvaluatorError("unfit inputs")
        return time_both(context)

    vars(phases)["time_both"] = fail


def impatient() -> None:
    """Lets go soon whoever serves runs."""
    process.PREPARE_AFTER_S, process.IDLE_S = 0.1, 0.5


def unhurried() -> None:
    """Has the next submission's sandbox early, and keeps it."""
    sharing()
    process.PREPARE_AFTER_S = 0.1


def spacious() -> None:
    """Divides processors among ranks, however few there are. Fails where a sandbox for the next run
    works while this one is timed."""
    hurried()
    pool.host_for = _with_cores  # type: ignore[attr-defined]
    for name in ("time_both", "time_alone"):
        vars(phases)[name] = _beside_nobody(vars(phases)[name])


def _beside_nobody(timed: Callable[..., Any]) -> Callable[..., Any]:
    def watched(context: RunContext, *given: Any) -> Any:
        waiting = context.pool.waiting.values()
        before = [side.sandbox.processor_s() for side in waiting]
        found = timed(context, *given)
        if [side.sandbox.processor_s() for side in waiting] != before:
            raise EvaluatorError("a sandbox for the next run was at work")
        return found

    return watched


def disturbed() -> None:
    """Has a clock by which calls of the reference take ten times as long beside a submission, and
    still longer in three rounds after it."""
    brisk()
    pace.PACES[Device.CPU] = replace(pace.PACES[Device.CPU], least_batches=7)
    slow = {0: 10.0, 1: 100.0, 2: 100.0, 3: 100.0}
    _dilate(lambda ours, calls, alone: slow.get(alone, 1.0) if ours else 1.0)


def disturbed_singles() -> None:
    """Has a clock by which single calls of the reference take much longer beside a submission."""
    brisk()
    _dilate(lambda ours, calls, alone: 100.0 if ours and calls == 1 and not alone else 1.0)


def upset_once() -> None:
    """Has a clock by which single calls of both sides are slow beside the first submission."""
    brisk()
    _dilate(lambda ours, calls, alone: 100.0 if calls == 1 and not alone else 1.0, once=True)


def _dilate(factor: Callable[[bool, int, int], float], *, once: bool = False) -> None:
    """Have calls take so many times as long, by whether they are the reference's, how many a batch
    has, and which it is of those alone: beside a submission they are of the 0th batch; when it has
    ended they are of the first, the second, and so on. `once`: beside the first alone."""
    real, alone = run_context.timed_batch, [0]

    def dilated(
        side: RankGroup, oracle: OracleGroup, batch: tuple[int, ...], *, made: int | None = None
    ) -> TimedBatch:
        timed, is_ours = real(side, oracle, batch, made=made), side.side == pool.REFERENCE
        if made is not None:
            return timed
        wall_us = timed.wall_us * factor(is_ours, len(batch), alone[0])
        alone[0] += is_ours and alone[0] > 0 and len(batch) > 1
        return replace(timed, wall_us=wall_us)

    def time_alone(context: RunContext, samples: Samples) -> None:
        alone[0] = 1
        timed_phase.time_alone(context, samples)
        alone[0] = int(once)

    vars(timed_phase)["timed_batch"] = dilated
    vars(phases)["time_alone"] = time_alone


def guarded() -> None:
    """Fails where the oracle makes inputs or compares while a submission may run, after a build."""
    hurried()
    from evaluator.oracle.group import OracleGroup

    paused, kill, standing = RankGroup.paused, RankGroup.kill, set[str]()

    @contextlib.contextmanager
    def noted(self: RankGroup) -> Iterator[None]:
        with paused(self):
            standing.add(self.side)
            yield
            standing.remove(self.side)

    def killed(self: RankGroup) -> Any:
        standing.add(self.side)
        return kill(self)

    def guard(work: Callable[..., Any]) -> Callable[..., Any]:
        def only_then(self: OracleGroup, *given: Any) -> Any:
            if self._size and pool.SUBMISSION not in standing:
                raise EvaluatorError("the oracle works beside a submission")
            return work(self, *given)

        return only_then

    RankGroup.paused = noted  # type: ignore[method-assign]
    RankGroup.kill = killed  # type: ignore[method-assign]
    for name in ("refresh", "check"):
        setattr(OracleGroup, name, guard(getattr(OracleGroup, name)))


def accounting() -> None:
    """Fails where the kernel has yet to free much memory of a submission that has ended."""
    hurried()
    remove = Leaf.remove

    def remove_freed(self: Leaf, timeout_s: float = 10.0) -> bool:
        if (left := self.memory_bytes) > UNFREED_BYTES:
            raise EvaluatorError(f"{left >> 20} MiB of the dead are left")
        return remove(self, timeout_s)

    Leaf.remove = remove_freed  # type: ignore[method-assign]


def bereaved() -> None:
    """Loses one of the oracle's workers once beside a submission."""
    hurried()

    def lose(context: RunContext) -> Samples:
        vars(phases)["time_both"] = time_both
        workers = context.oracle._workers
        os.kill(workers._pids[0], signal.SIGKILL)
        time.sleep(0.2)
        return time_both(context)

    vars(phases)["time_both"] = lose


def unjoined() -> None:
    """Has ranks that cannot join their group."""
    hurried()
    launch_after("from problems import mesh\nmesh.join_world = None")


def torchless() -> None:
    """Has sandboxes that cannot import torch."""
    hurried()
    launch_after("sys.modules['torch'] = None")


def abandoned() -> None:
    """Loses its first submission just as the slabs of the timed phase are there."""
    hurried()
    load, lost = RankGroup.load, list[str]()

    def load_or_lose(self: RankGroup, plans: Any) -> None:
        if self.side == pool.SUBMISSION and self.phase is Phase.TIMED and not lost:
            lost.append(self.side)
            raise Fault(Verdict.RUNTIME_ERROR, "exit", "a rank ended")
        load(self, plans)

    RankGroup.load = load_or_lose  # type: ignore[method-assign]


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


if __name__ == "__main__":
    vars()[sys.argv[1]]()
    prefork.main(int(sys.argv[2]), *sys.argv[3:])
