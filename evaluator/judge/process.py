"""Runs the trusted judge, a process of its own, which owns the inputs, the clock and the verdict.

Reads a Job a line from stdin; writes a JSON object a line to stdout: progress, then a report, and
the next job may come; or an error, and it ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO

from evaluator.diagnosis.diagnose import first_fault
from evaluator.host.leftovers import remove_leftovers
from evaluator.host.parent_death import undisturbed
from evaluator.judge.findings import Findings
from evaluator.judge.pool import REFERENCE, SUBMISSION, WorkerPool, start_pool
from evaluator.judge.profile_phase import profile
from evaluator.judge.run_context import Emit, RunContext, blame, trial_call
from evaluator.judge.timed_phase import time_alone, time_both
from evaluator.messages.faults import (
    BesideSubmission,
    DirtyHost,
    EvaluatorError,
    Fault,
    GpuFull,
    Survivors,
)
from evaluator.messages.job import Job
from evaluator.messages.protocol import read_job, send_error, send_progress, send_report
from evaluator.messages.report import UNCLEAN_HOST, Phase, Progress, Report, Trial, Verdict
from evaluator.sandbox import support
from evaluator.sandbox.hardware import environment
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing.limits import limits_of
from evaluator.timing.roofline import exceeds_roofline, roofline_bounds, unbeatable_us
from problems.guards import work_share
from problems.trials import TrialSpec, trials_before_timing

Phases = Callable[[RunContext], Fault | None]
CORES_PER_RANK = 4
PREPARE_AFTER_S, IDLE_S = 0.3, 600.0
RUNS = 2  # one failure beside a submission may be a coincidence
OUTLIVED = "processes of the kernel were still there long after they were killed"


def judge(job: Job, emit: Emit, pool: WorkerPool, phases: Phases) -> Report:
    """Judge one kernel; raises EvaluatorError for what is not the submitter's fault."""
    findings = Findings()
    began = time.monotonic()
    remove_leftovers()
    with contextlib.ExitStack() as stack:
        with undisturbed():
            submission = pool.acquire()
            stack.callback(_end, submission, findings)
        oracle = pool.oracle
        both = (submission, pool.reference)
        controls = {side.side: side.control_fds for side in both}
        oracle.begin(job, secrets.token_bytes(16), controls)
        context = RunContext(
            job=job, pool=pool, submission=submission, findings=findings, emit=emit
        )
        stack.callback(context.close_slabs)
        findings.phase_s["setup"] = round(time.monotonic() - began, 4)
        fault = phases(context) or _check_bound(context)
        teardown = time.monotonic()
        known = {
            "environment": environment(context.host.gpus),
            "isolation": context.submission.isolation,
            "pauses": context.submission.sandbox.pauser.counted,
            "problem": oracle.module.slug,
            "problem_digest": oracle.module.digest,
        }
    findings.panel_s = oracle.spent_s
    if UNCLEAN_HOST in findings.flags:
        findings.timing = None
        fault = fault or Fault(Verdict.RESOURCE_LIMIT, "processes", OUTLIVED)
    else:
        pool.release()
        context.host.wait_until_clean()
    took_s = findings.phase_s.get(Phase.TEARDOWN, 0.0) + time.monotonic() - teardown
    findings.phase_s[Phase.TEARDOWN] = round(took_s, 4)
    return findings.report(job, fault, known)


def run_phases(context: RunContext) -> Fault | None:
    """Return the submission's fault, if it has one. Raises BesideSubmission for what may be one."""
    try:
        if lacking := support.lacking(context.job, context.oracle.module.problem, context.host):
            raise Fault(Verdict.HOST_UNSUPPORTED, "host", lacking)
        with context.host.building(), context.phase(Phase.BUILD):
            _build(context)
        with context.host.alone():
            trials = context.oracle.trials
            before = trials_before_timing(len(trials))
            with context.phase(Phase.VERIFY):
                _verify(context, trials[:before])
            with context.phase(Phase.TIMED):
                samples = time_both(context)
            with context.phase(Phase.VERIFY):
                _verify_again(context, trials[before:])
            context.submission.check_health()
            with context.phase(Phase.PROFILE):
                profile(context)
            with context.phase(Phase.TEARDOWN):
                _end(context.submission, context.findings)
            if UNCLEAN_HOST not in context.findings.flags:
                with context.phase(Phase.TIMED):
                    time_alone(context, samples)
    except Fault as fault:
        return fault
    except DirtyHost:
        raise
    except EvaluatorError as error:
        if isinstance(error, GpuFull) and (fault_of_memory := context.fault_of_full_gpu()):
            return fault_of_memory
        if context.submission.is_ended:
            raise
        raise BesideSubmission(str(error)) from error
    return None


def try_reference(context: RunContext, *, error: EvaluatorError) -> Fault:
    """Return the fault of a submission beside which ours failed again and again, if the reference
    works without it; raises what failed where it does not."""
    with context.phase(Phase.BUILD):
        context.start(context.reference)
        context.oracle.prepare_all()
        context.slabs = context.oracle.make_slabs()
        context.wait_ready(context.reference)
    context.give_slabs(context.reference)
    key, _ = context.oracle.trials[0]
    try:
        with blame(context.reference):
            context.reference.load(context.oracle.plans(key))
            context.oracle.clear(key, REFERENCE)
            trial_call(context.reference, context.oracle)
    except EvaluatorError:
        raise error from None
    message = (
        f"the judge's own processes failed {RUNS} times beside it, and not without it: {error}"
    )
    return Fault(Verdict.RESOURCE_LIMIT, "beside", message)


def _check_bound(context: RunContext) -> Fault | None:
    """Return a fault for what no kernel can be: faster than the hardware. Somebody has to look at
    it."""
    job, module, timing = context.job, context.oracle.module, context.findings.timing
    limits = limits_of(context.host.gpus[0].name) if context.host.gpus else None
    if limits is None or timing is None:
        return None
    size = module.problem.sizes[job.size]
    cost = module.cost(
        module.dims(size.m, size.n, job.world_size), job.world_size, job.dtype.itemsize
    )
    cost = cost.times(work_share(module))
    context.findings.bounds = found = roofline_bounds(cost, job.dtype, limits, timing.burst_calls)
    if not exceeds_roofline(found, timing.kernel_us):
        return None
    context.findings.phase = Phase.TIMED
    message = (
        f"{timing.kernel_us:.1f} us a call, where this hardware needs {unbeatable_us(found):.1f}"
    )
    return Fault(Verdict.FASTER_THAN_LIGHT, "bound", message)


def _build(context: RunContext) -> None:
    """Have the ranks join and import while the oracle's make inputs and answers."""
    sides, enough_cores = [context.submission], CORES_PER_RANK * context.job.world_size
    if context.reference.is_started or (os.cpu_count() or 1) >= enough_cores:
        sides = [context.reference, context.submission]
    for side in sides:
        context.start(side)
    context.oracle.prepare_all()
    context.slabs = context.oracle.make_slabs()
    context.wait_ready(context.submission)
    if context.reference in sides:
        with context.submission.paused():  # helpers that it left at work would be in the way
            context.wait_ready(context.reference)
    context.give_slabs(context.submission)


def _verify(context: RunContext, trials: Sequence[tuple[str, TrialSpec]]) -> None:
    """Judge trials in lockstep: fresh inputs, poisoned outputs, skewed starts, every element
    compared."""
    for done, (key, spec) in enumerate(trials, start=len(context.findings.trials)):
        context.oracle.make_ready(key)
        context.submission.load(context.oracle.plans(key))
        context.oracle.clear(key, SUBMISSION)
        trial_call(context.submission, context.oracle)
        with context.submission.paused():
            context.oracle.snapshot(key, SUBMISSION)
        checks = context.oracle.check(key)
        trial = Trial(trial=done, m=spec.m, n=spec.n, note=spec.note, checks=tuple(checks))
        context.findings.trials.append(trial)
        if not trial.passed:
            raise first_fault(trial.checks, f"trial {done} ({spec.note})")
        context.oracle.drop(key)
        total = len(context.oracle.trials)
        context.emit(Progress(phase=Phase.VERIFY, done=done + 1, total=total))


def _verify_again(context: RunContext, trials: Sequence[tuple[str, TrialSpec]]) -> None:
    """Judge the trials that were left: a kernel that has counted its calls believes that none
    comes. Then lay out timed calls again, those of the profile ready to be made."""
    context.oracle.chain_inputs("timed", (), locked=False)
    _verify(context, trials)
    context.submission.load(context.oracle.plans("timed"))
    with context.submission.paused():
        context.oracle.clear("timed", SUBMISSION)


def _end(submission: RankGroup, findings: Findings) -> None:
    """End the submission, unless that is done. One that cannot be ended keeps its verdict, or gets
    one for that; this process and its host serve nobody after it."""
    if submission.is_ended:
        return
    try:
        findings.logs = submission.kill()
    except Survivors:
        findings.flags.append(UNCLEAN_HOST)
        findings.logs = submission.logs.finish()


def preload() -> None:
    """Import what every judge imports, torch among it; judges forked from here start with it."""
    from evaluator.oracle import group  # noqa: F401


class Judge:
    """Keeps a judge's process between its runs."""

    def __init__(self, channel: IO[str]) -> None:
        self._channel = channel
        self._pool: WorkerPool | None = None

    def serve(self, jobs: IO[str]) -> None:
        """Judge job after job, until there are no more. Raises what is not a submitter's fault."""
        while job := self._next(jobs):
            send_report(self._channel, self._judged(job))

    def close(self) -> None:
        """End what serves the runs."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _judged(self, job: Job) -> Report:
        """Judge a job; in new processes again where ours fail beside the submission, which is to
        blame if they do so again and again, and not without it."""
        for _ in range(RUNS):
            try:
                return self._run(job, run_phases)
            except BesideSubmission as error:
                self.close()
                failed = error
        return self._run(job, partial(try_reference, error=failed))

    def _run(self, job: Job, phases: Phases) -> Report:
        if self._pool is None:
            with undisturbed():
                self._pool = start_pool(job)
        return judge(job, lambda p: send_progress(self._channel, p), self._pool, phases)

    def _next(self, jobs: IO[str]) -> Job | None:
        """Read the next job. Ends a pool that has long waited for one, or does not fit the one that
        comes."""
        if self._pool is not None and not self._pool.is_free:
            self.close()
        if self._pool is not None and not _comes(jobs, PREPARE_AFTER_S):
            with undisturbed():
                self._pool.prepare()
            if not _comes(jobs, IDLE_S):
                self.close()
        job = read_job(jobs)
        if self._pool is not None and job is not None and not self._pool.fits(job):
            self.close()
        return job


def _comes(jobs: IO[str], within_s: float) -> bool:
    return bool(select.select([jobs], [], [], within_s)[0])


def main() -> int:
    """Judge in a process of its own; the supervisor in `evaluate` reads what it prints."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Nothing that is imported or run here may print into the channel to the supervisor.
    # Descriptors that a submission sends around count for its user: nobody may have as many as we.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    own = Judge(channel)
    try:
        own.serve(sys.stdin)
    except Exception as error:  # noqa: BLE001 - a process boundary: the supervisor raises it again
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it comes as soon as the error is read
        send_error(channel, error)
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        own.close()
    return 0
