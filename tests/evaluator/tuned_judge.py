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
from evaluator.judge import (
    baseline,
    phases,
    pool,
    prefork,
    process,
    race_screen,
    timed_phase,
)
from evaluator.judge.early_sends import Watch
from evaluator.judge.run_context import RunContext
from evaluator.judge.timed_phase import time_side
from evaluator.messages.faults import EvaluatorError, Fault, Survivors
from evaluator.messages.job import Device, Job
from evaluator.messages.report import Phase, RankLog, Verdict
from evaluator.sandbox.logs import LogCollector
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import pace
from evaluator.timing.timing import Times
from tests.evaluator.mutating import launch_after
from tests.evaluator.written_bytes import count_nothing, count_written

if TYPE_CHECKING:
    from evaluator.oracle.group import OracleGroup

VARIATION = "PKB_TEST_VARIATION"
UNFREED_BYTES = 256 << 20


def unprepared() -> None:
    """Makes nothing for a next run that may not come."""
    process.PREPARE_AFTER_S = 3600.0


def brisk() -> None:
    """Times less."""
    unprepared()
    pace.TIMED_CALLS, pace.LEAST_WATCHED = 32, 2


def hurried() -> None:
    """Times as little as can be, for kernels whose times nobody reads."""
    brisk()
    pace.LEAST_WARMUP_CALLS, pace.TIMED_CALLS, pace.ROUND_CALLS = 16, 8, 4


def gated() -> None:
    """Seals inputs on processors as on GPUs: ranks wait at a gate and commit to their outputs."""
    brisk()
    pace.LEAST_WARMUP_CALLS, pace.TIMED_CALLS = 16, 16
    pace.ahead_ms = lambda ahead=(): 3.0  # nothing can be queued ahead here
    vars(timed_phase)["watching"] = lambda gpus: contextlib.nullcontext(Watch(count_nothing))
    for module in (timed_phase, phases, race_screen):
        vars(module)["GATED_DEVICES"] = frozenset(Device)


def watched() -> None:
    """Does the same. What processes write stands for what leaves a GPU."""
    gated()
    vars(timed_phase)["watching"] = lambda gpus: contextlib.nullcontext(Watch(count_written))


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

    def fail(context: RunContext, side: RankGroup) -> Times:
        vars(phases)["time_side"] = time_side
        raise EvaluatorError("bad luck")

    vars(phases)["time_side"] = fail


def unfit() -> None:
    """Fails on the inputs of its first two runs, with a submission or without."""
    hurried()
    seen: list[bytes] = []

    def fail(context: RunContext, side: RankGroup) -> Times:
        seen.append(context.oracle._secret)
        if seen[-1] in seen[:2]:
            raise EvaluatorError("unfit inputs")
        return time_side(context, side)

    vars(phases)["time_side"] = fail


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
    for module in (phases, baseline):
        vars(module)["time_side"] = _beside_nobody(time_side)


def _beside_nobody(timed: Callable[..., Any]) -> Callable[..., Any]:
    def watched(context: RunContext, *given: Any) -> Any:
        waiting = context.pool.waiting.values()
        before = [side.sandbox.processor_s() for side in waiting]
        found = timed(context, *given)
        if [side.sandbox.processor_s() for side in waiting] != before:
            raise EvaluatorError("a sandbox for the next run was at work")
        return found

    return watched


def slow_once_after() -> None:
    """Has a clock by which the reference takes much longer once, after the submission."""
    _dilate(1.0, 100.0)


def slow_ever_after() -> None:
    """Has a clock by which the reference takes much longer, however often, after the submission."""
    _dilate(1.0, 100.0, 100.0, 100.0)


def _dilate(*factors: float) -> None:
    """Have the reference take so many times as long, each time that it is timed."""
    brisk()
    left = list(factors)

    def dilated(context: RunContext, side: RankGroup) -> Times:
        found, factor = time_side(context, side), left.pop(0) if left else 1.0
        return replace(found, calls=[factor * us for us in found.calls])

    vars(baseline)["time_side"] = dilated


def guarded() -> None:
    """Fails where the oracle makes inputs or compares while a submission may run, after a build."""
    hurried()
    from evaluator.oracle.group import OracleGroup

    paused, kill, load, running = RankGroup.paused, RankGroup.kill, RankGroup.load, set[str]()

    @contextlib.contextmanager
    def noted(self: RankGroup) -> Iterator[None]:
        with paused(self):
            running.discard(self.side)
            yield
            running.add(self.side)

    def loaded(self: RankGroup, plans: Any) -> None:
        running.add(self.side)
        load(self, plans)

    def killed(self: RankGroup) -> Any:
        running.discard(self.side)
        return kill(self)

    def guard(work: Callable[..., Any]) -> Callable[..., Any]:
        def only_then(self: OracleGroup, *given: Any) -> Any:
            if pool.SUBMISSION in running:
                raise EvaluatorError("the oracle works beside a submission")
            return work(self, *given)

        return only_then

    RankGroup.paused = noted  # type: ignore[method-assign]
    RankGroup.load = loaded  # type: ignore[method-assign]
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

    def lose(context: RunContext, side: RankGroup) -> Times:
        vars(phases)["time_side"] = time_side
        workers = context.oracle._workers
        os.kill(workers._pids[0], signal.SIGKILL)
        time.sleep(0.2)
        return time_side(context, side)

    vars(phases)["time_side"] = lose


def unjoined() -> None:
    """Has ranks that cannot join their group."""
    hurried()
    launch_after("from problems.running import mesh\nmesh.join_world = None")


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
    cores = Cores(judge=everywhere[0], launching=each, helping=helping)
    return replace(host_for(job), cores=cores)


if __name__ == "__main__":
    vars()[sys.argv[1]]()
    prefork.main(int(sys.argv[2]), *sys.argv[3:])
