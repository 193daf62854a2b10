"""The trusted judge, a process of its own: it owns inputs, clock, oracle, verdict.

Reads a Job a line from stdin; writes a JSON object a line to stdout: progress, then a report, and
the next job may come; or an error, and it ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import sys
import time
from typing import IO

from evaluator.diagnosis.diagnose import first_fault
from evaluator.host.leftovers import remove_leftovers
from evaluator.host.parent_death import undisturbed
from evaluator.judge.findings import Findings
from evaluator.judge.pool import SUBMISSION, Staff, hire
from evaluator.judge.profile_phase import profile
from evaluator.judge.run_context import Bench, Emit, trial_burst
from evaluator.judge.timed_phase import time_both
from evaluator.messages.faults import Fault, GpuFull
from evaluator.messages.job import Job
from evaluator.messages.protocol import read_job, send_error, send_progress, send_report
from evaluator.messages.report import Phase, Progress, Report, Trial, Verdict
from evaluator.sandbox import support
from evaluator.sandbox.hardware import environment
from evaluator.sandbox.rank_group import Ranks
from evaluator.timing.limits import limits_of
from evaluator.timing.roofline import exceeds_roofline, roofline_bounds, unbeatable_us

CORES_PER_RANK = 4
LULL_S, IDLE_S = 0.3, 600.0


def judge(job: Job, emit: Emit, staff: Staff) -> Report:
    """Judge one kernel; raises EvaluatorError for what is not the submitter's fault."""
    findings = Findings()
    began = time.monotonic()
    remove_leftovers()
    with contextlib.ExitStack() as stack:
        with undisturbed():
            submission = staff.admit()
            stack.callback(_end, submission, findings)
        panel = staff.panel
        both = (submission, staff.reference)
        controls = {side.side: side.control_fds for side in both}
        panel.begin(job, secrets.token_bytes(16), controls)
        bench = Bench(job=job, staff=staff, submission=submission, findings=findings, emit=emit)
        stack.callback(bench.close_slabs)
        findings.phase_s["setup"] = round(time.monotonic() - began, 4)
        fault = _run_phases(bench) or _check_bound(bench)
        teardown = time.monotonic()
        known = {
            "environment": environment(bench.host.gpus),
            "isolation": bench.submission.isolation,
            "problem": panel.module.slug,
            "problem_digest": panel.module.digest,
        }
    findings.panel_s = panel.spent_s
    staff.rest()
    bench.host.wait_until_clean()
    findings.phase_s[Phase.TEARDOWN] = round(time.monotonic() - teardown, 4)
    return findings.report(job, fault, known)


def _run_phases(bench: Bench) -> Fault | None:
    try:
        if lacking := support.lacking(bench.job, bench.panel.module.problem, bench.host):
            raise Fault(Verdict.HOST_UNSUPPORTED, "host", lacking)
        with bench.host.building(), bench.phase(Phase.BUILD):
            _build(bench)
        with bench.host.alone():
            with bench.phase(Phase.VERIFY):
                _verify(bench)
            with bench.phase(Phase.TIMED):
                time_both(bench)
            bench.submission.check_health()
            with bench.phase(Phase.PROFILE):
                profile(bench)
    except Fault as fault:
        bench.findings.timing = None
        return fault
    except GpuFull as full:
        bench.findings.timing = None
        return bench.who_filled_the_gpu(full)
    return None


def _check_bound(bench: Bench) -> Fault | None:
    """What no kernel can be: faster than the hardware. Somebody has to look at it."""
    job, module, timing = bench.job, bench.panel.module, bench.findings.timing
    limits = limits_of(bench.host.gpus[0].name) if bench.host.gpus else None
    if limits is None or timing is None:
        return None
    size = module.problem.sizes[job.size]
    cost = module.cost(
        module.dims(size.m, size.n, job.world_size), job.world_size, job.dtype.itemsize
    )
    bench.findings.floors = found = roofline_bounds(cost, job.dtype, limits, timing.burst_calls)
    if not exceeds_roofline(found, timing.kernel_us):
        return None
    bench.findings.phase = Phase.TIMED
    message = (
        f"{timing.kernel_us:.1f} us a call, where this hardware needs {unbeatable_us(found):.1f}"
    )
    return Fault(Verdict.FASTER_THAN_LIGHT, "bound", message)


def _build(bench: Bench) -> None:
    """The ranks join and import while the judge's own make inputs and answers."""
    sides, enough_cores = [bench.submission], CORES_PER_RANK * bench.job.world_size
    if bench.reference.is_started or (os.cpu_count() or 1) >= enough_cores:
        sides = [bench.reference, bench.submission]
    for side in sides:
        bench.start(side)
    bench.panel.prepare_all()
    bench.slabs = bench.panel.make_slabs()
    for side in sides:
        bench.greet(side)
    bench.give_slabs(bench.submission)


def _verify(bench: Bench) -> None:
    """Trials in lockstep: fresh inputs, poisoned outputs, skewed starts, every element compared."""
    for done, (key, spec) in enumerate(bench.panel.trials):
        bench.panel.make_ready(key)
        bench.submission.load(bench.panel.plans(key))
        bench.panel.clear(key, SUBMISSION)
        trial_burst(bench.submission, bench.panel)
        checks = bench.panel.check(key, SUBMISSION)
        trial = Trial(trial=done, m=spec.m, n=spec.n, note=spec.note, checks=tuple(checks))
        bench.findings.trials.append(trial)
        if not trial.passed:
            raise first_fault(trial.checks, f"trial {done} ({spec.note})")
        bench.panel.drop(key)
        bench.emit(Progress(phase=Phase.VERIFY, done=done + 1, total=len(bench.panel.trials)))


def _end(submission: Ranks, findings: Findings) -> None:
    findings.logs = submission.kill()


def preload() -> None:
    """Import what every judge imports, torch among it; judges forked from here start with it."""
    from evaluator.oracle import group  # noqa: F401


class Judge:
    """A judge's process between its runs."""

    def __init__(self, channel: IO[str]) -> None:
        self._channel = channel
        self._staff: Staff | None = None

    def serve(self, jobs: IO[str]) -> None:
        """Job after job, until there are no more. Raises what is not a submitter's fault."""
        while job := self._next(jobs):
            if self._staff is None:
                with undisturbed():
                    self._staff = hire(job)
            report = judge(job, lambda p: send_progress(self._channel, p), self._staff)
            send_report(self._channel, report)

    def close(self) -> None:
        if self._staff is not None:
            self._staff.close()
            self._staff = None

    def _next(self, jobs: IO[str]) -> Job | None:
        """Staff that has long waited for a job, or does not fit the one that comes, is let go."""
        if self._staff is not None and not self._staff.is_free:
            self.close()
        if self._staff is not None and not _comes(jobs, LULL_S):
            with undisturbed():
                self._staff.prepare()
            if not _comes(jobs, IDLE_S):
                self.close()
        job = read_job(jobs)
        if self._staff is not None and job is not None and not self._staff.fits(job):
            self.close()
        return job


def _comes(jobs: IO[str], within_s: float) -> bool:
    return bool(select.select([jobs], [], [], within_s)[0])


def main() -> int:
    """Judges in a process of its own; the supervisor in `evaluate` reads what it prints."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Nothing that is imported or run here may print into the channel to the supervisor.
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
