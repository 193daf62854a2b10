"""What is alive during a run, and what every phase does with it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from evaluator.buffers.control_page import Command
from evaluator.host import gpus, processes
from evaluator.host.host import Host
from evaluator.judge.findings import Findings
from evaluator.judge.pool import SUBMISSION, Staff
from evaluator.messages.faults import EvaluatorError, Fault, GpuFull
from evaluator.messages.job import Device, Job
from evaluator.messages.rank_setup import RankSetup
from evaluator.messages.report import Phase, Progress, Verdict
from evaluator.sandbox.rank_group import Ranks

if TYPE_CHECKING:
    from evaluator.oracle.group import Panel

Emit = Callable[[Progress], None]
Slabs = dict[str, list[tuple[int, int]]]
MAX_SKEW_S = 0.002
HOARD = 0.5


@dataclass(kw_only=True)
class Bench:
    """Everything alive during a run: two sandboxed sides and the judge's own ranks."""

    job: Job
    staff: Staff
    submission: Ranks
    findings: Findings
    emit: Emit
    slabs: Slabs = field(default_factory=dict)
    is_reference_called: bool = False

    @property
    def reference(self) -> Ranks:
        return self.staff.reference

    @property
    def panel(self) -> Panel:
        return self.staff.panel

    @property
    def host(self) -> Host:
        return self.staff.host

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        self.findings.phase = phase
        self.submission.enter(phase)
        self.reference.enter(phase)
        self.emit(Progress(phase=phase))
        began = time.monotonic()
        try:
            yield
        finally:
            self.findings.phase_s[phase] = round(time.monotonic() - began, 4)

    def start(self, side: Ranks) -> None:
        """The side's ranks join their group and import their entry; `greet` waits for them."""
        self.is_reference_called |= side is self.reference
        task = self.panel.task(self.job.source if side is self.submission else None)
        if side.is_started:
            side.take(task)
            return
        setup = RankSetup(
            task=task,
            world_size=self.job.world_size,
            threads=self.host.threads,
            device=self.job.device,
            cores=self.host.cores.helping if self.host.cores else (),
        )
        side.start(setup)

    def greet(self, side: Ranks) -> None:
        """Wait until the side's ranks are ready."""
        with blame(side):
            side.wait()

    def give_slabs(self, side: Ranks) -> None:
        """Not before they are needed: what a run that ends early has not asked for would be there
        for the next."""
        side.give_slabs(self.slabs.pop(side.side))

    def close_slabs(self) -> None:
        """Those that nobody came to need."""
        for fd, _ in chain.from_iterable(self.slabs.values()):
            os.close(fd)
        self.slabs = {}

    def who_filled_the_gpu(self, full: GpuFull) -> Fault:
        """The submission, if it holds most of one; this host is too small if the inputs alone do
        not fit. Raises the error itself where it is neither."""
        root = self.submission.sandbox.process.pid
        for gpu in self.host.gpus:
            held = gpus.held_bytes(gpu).items()
            own_bytes = sum(nbytes for pid, nbytes in held if root in processes.ancestry(pid))
            if own_bytes > HOARD * gpu.memory_bytes:
                message = (
                    f"the ranks hold {own_bytes >> 30} GiB of GPU {gpu.index}, and others need some"
                )
                return Fault(Verdict.OOM, "gpu_memory", message)
        if self.findings.phase is not Phase.BUILD:
            raise full
        message = "the inputs and their answers need more memory than this host's GPUs have"
        return Fault(Verdict.HOST_UNSUPPORTED, "gpu_memory", message)


def trial_burst(side: Ranks, panel: Panel) -> None:
    """One call of every rank, which do not start at the same moment."""
    side.arm()
    panel.release(side.side, (0,), side.stage(Command.CALL, (0,)), MAX_SKEW_S)
    side.wait()


def timed_burst_ns(side: Ranks, panel: Panel, burst: tuple[int, ...]) -> int:
    """Judge's wall time of a burst, from the moment when the ranks may go on until the last is done
    and its GPU too. They stand still while their inputs are written."""
    side.arm()
    sequence = side.stage(Command.CALL, burst)
    watches = panel.job.device is Device.CUDA
    with side.paused():
        panel.release(side.side, burst, sequence)
        if watches:
            panel.watch_for_end(side.side, sequence)
        began_ns = time.perf_counter_ns()
    side.wait()
    ended_ns, early = panel.ended() if watches else (time.perf_counter_ns(), [])
    if early:
        message = f"rank {early[0]} said it was done before its GPU had written every output"
        raise Fault(Verdict.LATE_OUTPUT, "unwritten", message, ranks=early)
    return ended_ns - began_ns


@contextlib.contextmanager
def blame(side: Ranks) -> Iterator[None]:
    """The reference runs our code: whatever happens to it is never the submitter's fault."""
    try:
        yield
    except Fault as fault:
        if side.side == SUBMISSION:
            raise
        kind = GpuFull if fault.cause == "gpu_memory" else EvaluatorError
        raise kind(f"the reference failed: {fault.message}") from fault
