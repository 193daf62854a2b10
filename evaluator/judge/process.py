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
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import IO

from evaluator.host.leftovers import remove_leftovers
from evaluator.host.load import RUNS
from evaluator.host.parent_death import undisturbed
from evaluator.judge.baseline import Baselines
from evaluator.judge.findings import Findings
from evaluator.judge.phases import (
    check_bound,
    end_submission,
    run_phases,
    try_reference,
)
from evaluator.judge.pool import WorkerPool, start_pool
from evaluator.judge.run_context import Emit, RunContext
from evaluator.messages.faults import (
    BesideSubmission,
    Fault,
)
from evaluator.messages.job import Job
from evaluator.messages.protocol import read_job, send_error, send_progress, send_report
from evaluator.messages.report import UNCLEAN_HOST, Phase, Report, Verdict
from evaluator.sandbox.hardware import environment

Phases = Callable[[RunContext], Fault | None]
PREPARE_AFTER_S, IDLE_S = 0.3, 600.0
OUTLIVED = "processes of the kernel were still there long after they were killed"


def judge(job: Job, emit: Emit, pool: WorkerPool, phases: Phases, secret: bytes) -> Report:
    """Judge one kernel on the inputs of a secret; raises EvaluatorError for what is not the
    submitter's fault."""
    findings = Findings()
    began = time.monotonic()
    remove_leftovers()
    with contextlib.ExitStack() as stack:
        with undisturbed():
            submission = pool.acquire()
            stack.callback(end_submission, submission, findings)
        oracle = pool.oracle
        both = (submission, pool.reference)
        controls = {side.side: side.control_fds for side in both}
        oracle.begin(job, secret, controls)
        context = RunContext(
            job=job, pool=pool, submission=submission, findings=findings, emit=emit
        )
        findings.phase_s["setup"] = round(time.monotonic() - began, 4)
        fault = phases(context) or check_bound(context)
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


def preload() -> None:
    """Import what every judge imports, torch among it; judges forked from here start with it."""
    from evaluator.oracle import group  # noqa: F401


class JudgeServer:
    """Keeps a judge's process between its runs."""

    def __init__(self, channel: IO[str]) -> None:
        self._channel = channel
        self._pool: WorkerPool | None = None
        self._baselines = Baselines()

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
        blame if they do so again and again, and not without it on the same inputs. A secret that
        the job shares with others is read here, and goes on without the job."""
        shared, job = job.secret, replace(job, secret=None)
        for _ in range(RUNS):
            secret = bytes.fromhex(shared) if shared else secrets.token_bytes(16)
            try:
                return self._run(job, partial(run_phases, baselines=self._baselines), secret)
            except BesideSubmission as error:
                self.close()
                failed = error
        again = partial(try_reference, baselines=self._baselines, error=failed)
        return self._run(job, again, secret)

    def _run(self, job: Job, phases: Phases, secret: bytes) -> Report:
        if self._pool is not None and not self._pool.fits(job):
            self.close()
        if self._pool is None:
            with undisturbed():
                self._pool = start_pool(job)
        return judge(job, lambda p: send_progress(self._channel, p), self._pool, phases, secret)

    def _next(self, jobs: IO[str]) -> Job | None:
        """Read the next job. Ends a pool that has long waited for one."""
        if self._pool is not None and not self._pool.is_free:
            self.close()
        if self._pool is not None and not _comes(jobs, PREPARE_AFTER_S):
            with undisturbed():
                self._pool.prepare()
            if not _comes(jobs, IDLE_S):
                self.close()
        return read_job(jobs)


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
    own = JudgeServer(channel)
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
