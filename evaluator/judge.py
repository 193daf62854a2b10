"""The trusted judge of one run, a process of its own: it owns inputs, clock, oracle, verdict.

Reads a Job from stdin; writes a JSON object a line to stdout: progress, then a report or an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
import time

from evaluator import support
from evaluator.bench import Bench, Emit, trial_burst
from evaluator.codec import decode
from evaluator.diagnose import first_fault
from evaluator.findings import Findings
from evaluator.hardware import environment
from evaluator.job import Job
from evaluator.leftovers import remove_leftovers
from evaluator.limits import limits_of
from evaluator.profile_phase import profile
from evaluator.ranks import Fault, GpuFull
from evaluator.report import Phase, Progress, Report, Trial, Verdict
from evaluator.roofline import floors, is_faster_than_light
from evaluator.sides import SUBMISSION, Sides, launch
from evaluator.timed_phase import time_both

CORES_PER_RANK = 4
EXPECTED_JOB = "PKB_EXPECTED_JOB"


def judge(job: Job, emit: Emit, ahead: Sides | None = None) -> Report:
    """Judge one kernel; raises EvaluatorError for what is not the submitter's fault.

    `ahead` are sides that were launched before the job was known.
    """
    findings = Findings()
    began = time.monotonic()
    remove_leftovers()
    with contextlib.ExitStack() as stack:
        sides = _fitting(job, ahead)
        stack.callback(_end, sides, findings)
        from evaluator.panel import Panel  # imports torch where no warm standby has

        both = (sides.submission, sides.reference)
        controls = {side.side: side.control_fds for side in both}
        panel = Panel(job, secrets.token_bytes(16), controls, sides.host)
        stack.callback(panel.close)
        if sides.host.cores:
            os.sched_setaffinity(0, {sides.host.cores.judge})
        bench = Bench(job=job, sides=sides, panel=panel, findings=findings, emit=emit)
        findings.phase_s["setup"] = round(time.monotonic() - began, 4)
        fault = _run_phases(bench) or _check_bound(bench)
        teardown = time.monotonic()
        known = {
            "environment": environment(bench.host.gpus),
            "isolation": bench.submission.isolation,
            "problem": panel.module.slug,
            "problem_digest": panel.module.digest,
        }
    bench.host.wait_until_clean()
    findings.phase_s[Phase.TEARDOWN] = round(time.monotonic() - teardown, 4)
    return findings.report(job, fault, known)


def _fitting(job: Job, ahead: Sides | None) -> Sides:
    """The sides that are there, or others where a sandbox for this job has to be different."""
    if ahead is not None and ahead.fit(job):
        return ahead
    if ahead is not None:
        ahead.end()
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return launch(job)


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
    bench.findings.floors = found = floors(cost, job.dtype, limits, timing.burst_calls)
    if not is_faster_than_light(found, timing.kernel_us):
        return None
    bench.findings.phase = Phase.TIMED
    message = f"{timing.kernel_us:.1f} us a call, where this hardware needs {found.light_us:.1f}"
    return Fault(Verdict.FASTER_THAN_LIGHT, "bound", message)


def _build(bench: Bench) -> None:
    """The ranks join and import while the judge's own make inputs and answers."""
    sides = [bench.submission]
    if (os.cpu_count() or 1) >= CORES_PER_RANK * bench.job.world_size:
        sides = [bench.reference, bench.submission]
    for side in sides:
        bench.start(side)
    bench.panel.prepare_all()
    bench.slabs = bench.panel.make_slabs()
    for side in sides:
        bench.greet(side)


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


def _end(sides: Sides, findings: Findings) -> None:
    findings.logs = sides.end()


def preload() -> None:
    """Import what every judge imports, torch among it; judges forked from here start with it."""
    from evaluator import panel  # noqa: F401


def _launch_ahead(stack: contextlib.ExitStack) -> Sides | None:
    """Sides for a job like the one that is expected, if one is; ended where none comes."""
    if EXPECTED_JOB not in os.environ:
        return None
    sides = launch(decode(Job, json.loads(os.environ.pop(EXPECTED_JOB))))
    stack.callback(sides.end)
    return sides


def main() -> int:
    """One judge, in a process of its own; the supervisor in `evaluate` reads what it prints."""
    from evaluator.protocol import read_job, send_error, send_progress, send_report

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Nothing that is imported or run here may print into the channel to the supervisor.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        with contextlib.ExitStack() as stack:
            ahead = _launch_ahead(stack)
            job = read_job(sys.stdin)
            stack.pop_all()
        send_report(channel, judge(job, lambda p: send_progress(channel, p), ahead))
    except Exception as error:  # noqa: BLE001 - a process boundary: the supervisor raises it again
        send_error(channel, error)
        return 1
    return 0
