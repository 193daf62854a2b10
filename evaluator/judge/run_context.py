"""Holds what is alive during a run, and does with it what every phase needs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluator.buffers.control_page import Command
from evaluator.host import gpus, processes
from evaluator.host.host import Host
from evaluator.judge.findings import Findings
from evaluator.judge.pool import SUBMISSION, WorkerPool
from evaluator.messages.faults import EvaluatorError, Fault, GpuFull
from evaluator.messages.job import Job, Placement
from evaluator.messages.rank_setup import RankSetup
from evaluator.messages.report import Phase, Progress, Verdict
from evaluator.sandbox.rank_group import RankGroup

if TYPE_CHECKING:
    from evaluator.oracle.group import OracleGroup

Emit = Callable[[Progress], None]
MAX_SKEW_S = 0.002
MAJOR_SHARE = 0.5
CONTROL_SHARE = 0.25


@dataclass(kw_only=True)
class RunContext:
    """Holds everything alive during a run: two sandboxed sides and the oracle.

    A run `is_control` where the reference stands in the submission's place, which has to do in a
    part of its limits of time: so what is slow is not the submission's doing.
    """

    job: Job
    pool: WorkerPool
    submission: RankGroup
    findings: Findings
    emit: Emit
    call_s: float = 0.0  # of the last trial
    is_prepared: bool = False
    is_reference_ready: bool = False
    is_control: bool = False

    @property
    def reference(self) -> RankGroup:
        """Return the reference's ranks."""
        return self.pool.reference

    @property
    def oracle(self) -> OracleGroup:
        """Return the oracle's ranks."""
        return self.pool.oracle

    @property
    def host(self) -> Host:
        """Return the part of the host that the run uses."""
        return self.pool.host

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Begin a phase on both sides, and add how long the block takes."""
        self.findings.phase = phase
        self.submission.enter(phase)
        self.reference.enter(phase)
        self.emit(Progress(phase=phase))
        began = time.monotonic()
        try:
            yield
        finally:
            took_s = self.findings.phase_s.get(phase, 0.0) + time.monotonic() - began
            self.findings.phase_s[phase] = round(took_s, 4)

    def start(self, side: RankGroup) -> None:
        """Have the side's ranks join their group and import their entry; `wait_ready` waits for
        them."""
        is_ours = side is self.reference or self.is_control
        task = self.oracle.task(None if is_ours else self.job.source)
        if side.is_started:
            side.give_task(task)
            side.patience *= self.share
            return
        setup = RankSetup(
            task=task,
            world_size=self.job.world_size,
            threads=self.host.threads,
            device=self.job.device,
            placement=self.job.placement,
            cores=self.host.cores.helping if self.host.cores else (),
        )
        side.start(setup)
        side.patience *= self.share

    @property
    def share(self) -> float:
        """Return which share of its limits of time anything may take."""
        return CONTROL_SHARE if self.is_control else 1.0

    def wait_ready(self, side: RankGroup) -> None:
        """Wait until the side's ranks are ready."""
        with blame(side):
            side.wait()

    def prepare(self) -> None:
        """Have the oracle make inputs and answers, once."""
        if not self.is_prepared:
            self.oracle.prepare_all()
            self.is_prepared = True

    def give_slabs(self, side: RankGroup) -> None:
        """Make the side's slabs. Not before they are needed: what a run that ends early has not
        asked for would be there for the next."""
        side.give_slabs(self.oracle.make_slabs([side.side])[side.side])

    def renew_timed(self, side: RankGroup, calls: int = 0) -> None:
        """Have new inputs and answers for timed calls, or for the last `calls` only, where those
        before lay if they fit, and tell the side where they lie."""
        before = self.oracle.plans("timed")
        with paused(side):
            self.oracle.refresh(calls)
        if (plans := self.oracle.plans("timed")) != before:  # or the same tensors hold other values
            with blame(side):
                side.load(plans)

    @property
    def is_crowded(self) -> bool:
        """Return whether others hold memory that a run with GPUs for itself may have missed."""
        return self.job.placement is Placement.FULL and self.host.is_crowded

    def fault_of_full_gpu(self) -> Fault | None:
        """Return the fault of the submission, if it holds most of a GPU, or of this host, which is
        too small if the inputs alone do not fit; None where others hold some of it."""
        if self.is_crowded:
            return None
        root = self.submission.sandbox.process.pid
        for gpu in self.host.gpus:
            held = gpus.held_bytes(gpu).items()
            own_bytes = sum(nbytes for pid, nbytes in held if root in processes.ancestry(pid))
            if own_bytes > MAJOR_SHARE * gpu.memory_bytes:
                message = (
                    f"the ranks hold {own_bytes >> 30} GiB of GPU {gpu.index}, and others need some"
                )
                return Fault(Verdict.OOM, "gpu_memory", message)
        is_shared = self.job.placement is Placement.SHARED  # others' runs may hold the rest
        if self.findings.phase is not Phase.BUILD and not is_shared:
            return None
        message = "the inputs and their answers need more memory than this host's GPUs have"
        return Fault(Verdict.HOST_UNSUPPORTED, "gpu_memory", message)


def trial_call(side: RankGroup, oracle: OracleGroup) -> float:
    """Make one call of every rank, which do not start at the same moment; return the seconds until
    the last is done."""
    side.arm()
    sequence = side.stage(Command.CALL, (0,))
    began = time.monotonic()
    oracle.release(side.side, (0,), sequence, max_skew_s=MAX_SKEW_S)
    side.wait()
    side.call_s = time.monotonic() - began
    return side.call_s


@contextlib.contextmanager
def blame(side: RankGroup) -> Iterator[None]:
    """Attribute faults: the reference runs our code, so whatever happens to it is never the
    submitter's."""
    try:
        yield
    except Fault as fault:
        if side.side == SUBMISSION:
            raise
        kind = GpuFull if fault.cause == "gpu_memory" else EvaluatorError
        raise kind(f"the reference failed: {fault.message}") from fault


@contextlib.contextmanager
def paused(side: RankGroup) -> Iterator[None]:
    """Pause a side while the block, which may be about the other, runs; what is wrong with its
    pause is attributed to this side alone."""
    with contextlib.ExitStack() as pause:
        with blame(side):
            pause.enter_context(side.paused())
        yield
        with blame(side):
            pause.close()
