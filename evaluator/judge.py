"""The trusted judge of one run, a process of its own: it owns inputs, clock, oracle, verdict.

Reads a Job from stdin; writes a JSON object a line to stdout: progress, then a report or an error.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator import ranks as rank_sets
from evaluator import timing
from evaluator.control import Command
from evaluator.diagnose import first_fault
from evaluator.findings import Findings
from evaluator.job import Job
from evaluator.leftovers import remove_leftovers
from evaluator.ranks import Fault, Ranks
from evaluator.report import EvaluatorError, Phase, Progress, Report, Trial, Verdict

if TYPE_CHECKING:
    from evaluator.panel import Panel

Emit = Callable[[Progress], None]
SUBMISSION, REFERENCE = "submission", "reference"
SINGLE_ROUNDS = 1
MAX_SKEW_S = 0.002
CORES_PER_RANK = 4


@dataclass(kw_only=True)
class Bench:
    """Everything alive during a run: two sandboxed sides and the judge's own ranks."""

    job: Job
    submission: Ranks
    reference: Ranks
    panel: Panel
    findings: Findings
    emit: Emit
    threads: int

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


def judge(job: Job, emit: Emit) -> Report:
    """Judge one kernel; raises EvaluatorError for what is not the submitter's fault."""
    findings = Findings()
    began = time.monotonic()
    remove_leftovers()
    threads = max(1, (os.cpu_count() or 1) // job.world_size)
    settings = {"OMP_NUM_THREADS": str(threads), "MAX_JOBS": str(os.cpu_count() or 1)}
    with contextlib.ExitStack() as stack:
        sides = {}
        for side in (SUBMISSION, REFERENCE):
            early = side == SUBMISSION or has_idle_core()
            sides[side] = rank_sets.launch(side, job, settings, import_early=early)
            stack.callback(_end, sides[side], findings)
        from evaluator.panel import Panel  # imports torch where no warm standby has

        panel = Panel(job, secrets.token_bytes(16), {s: r.fds for s, r in sides.items()})
        stack.callback(panel.close)
        bench = Bench(
            job=job,
            submission=sides[SUBMISSION],
            reference=sides[REFERENCE],
            panel=panel,
            findings=findings,
            emit=emit,
            threads=threads,
        )
        findings.phase_s["setup"] = round(time.monotonic() - began, 4)
        fault = _run_phases(bench)
        teardown = time.monotonic()
        known = {
            "isolation": bench.submission.isolation,
            "problem": panel.module.slug,
            "problem_digest": panel.module.digest,
        }
    findings.phase_s[Phase.TEARDOWN] = round(time.monotonic() - teardown, 4)
    return findings.report(job, fault, known)


def has_idle_core() -> bool:
    """Whether the reference can import torch beside the submission without slowing it down. If not,
    it waits: most kernels that fail never need it."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    others = running - 2  # this process, which soon waits, and the submission's first
    return others < (os.cpu_count() or 1)


def _run_phases(bench: Bench) -> Fault | None:
    try:
        with bench.phase(Phase.BUILD):
            _build(bench)
        with bench.phase(Phase.VERIFY):
            _verify(bench)
        with bench.phase(Phase.TIMED):
            _time(bench)
        bench.submission.check_health()
    except Fault as fault:
        bench.findings.timing = None
        return fault
    return None


def _build(bench: Bench) -> None:
    panel, sides = bench.panel, [bench.submission]
    panel.prepare_all()
    if (os.cpu_count() or 1) >= CORES_PER_RANK * bench.job.world_size:
        sides = [bench.reference, bench.submission]
    for side in (bench.submission, bench.reference):
        panel.seal(side.fds)
    panel.attach()
    for side in sides:
        _start(bench, side)
    for side in sides:
        with _blame(side):
            side.wait()


def _start(bench: Bench, side: Ranks) -> None:
    source = bench.job.source if side is bench.submission else None
    side.start(bench.panel.setup(source, bench.threads))


def _verify(bench: Bench) -> None:
    """Trials in lockstep: fresh inputs, poisoned outputs, skewed starts, every element compared."""
    for done, (key, spec) in enumerate(bench.panel.trials):
        bench.submission.load(bench.panel.plans(key))
        bench.panel.clear(key, SUBMISSION)
        _burst_ns(bench.submission, bench.panel, (0,), MAX_SKEW_S)
        checks = bench.panel.check(key, SUBMISSION)
        trial = Trial(trial=done, m=spec.m, n=spec.n, note=spec.note, checks=tuple(checks))
        bench.findings.trials.append(trial)
        if not trial.passed:
            raise first_fault(trial.checks, f"trial {done} ({spec.note})")
        bench.emit(Progress(phase=Phase.VERIFY, done=done + 1, total=len(bench.panel.trials)))


def _time(bench: Bench) -> None:
    """Bursts of both sides in ABBA order over inputs that neither has seen before the burst."""
    panel, samples = bench.panel, timing.Samples()
    if not bench.reference.is_started:
        _start(bench, bench.reference)
        with _blame(bench.reference):
            bench.reference.wait()
    _load_timed(bench)
    _warm_up(bench, samples)
    for round_number in range(SINGLE_ROUNDS):
        _round(bench, samples, round_number, single=True)
    began, calls, round_number = time.monotonic(), 0, 0
    while not timing.enough(calls, time.monotonic() - began):
        _round(bench, samples, round_number, single=False)
        calls += panel.burst_calls
        round_number += 1
        bench.emit(timing.progress(calls))
    bench.findings.timing, flags = timing.summarise(samples, panel.burst_calls)
    bench.findings.flags += flags


def _load_timed(bench: Bench) -> None:
    for side in (bench.submission, bench.reference):
        with _blame(side):
            side.load(bench.panel.plans("timed"))


def _warm_up(bench: Bench, samples: timing.Samples) -> None:
    """Untimed calls of both sides, side by side. Inputs stay, unless calls change them."""
    panel, sides = bench.panel, (bench.submission, bench.reference)
    burst = tuple(range(panel.burst_calls))
    began = time.monotonic()
    while samples.warmup_calls < timing.WARMUP_CALLS:
        for side in sides:
            if panel.mutates or not samples.warmup_calls:
                panel.clear("timed", side.side)
                panel.release(side.side, burst, side.stage(Command.CALL, burst))
            else:
                side.begin(burst)
        for side in sides:
            with _blame(side):
                side.wait()
        samples.warmup_calls += len(burst)
        if time.monotonic() - began > timing.MAX_WARMUP_S:
            return


def _round(bench: Bench, samples: timing.Samples, round_number: int, *, single: bool) -> None:
    """Fresh inputs, one burst of each side (or single calls), then every output compared."""
    if bench.panel.refresh():
        _load_timed(bench)
    burst = bench.panel.shuffled_burst()
    bursts: list[tuple[int, ...]] = [(index,) for index in burst] if single else [burst]
    sides = [bench.submission, bench.reference]
    for side in sides if round_number % 2 == 0 else reversed(sides):
        with _blame(side):
            walls_us = _timed_bursts(side, bench.panel, bursts)
        samples.add(side.side == SUBMISSION, walls_us, single=single)
        if side is bench.submission:
            _check_round(bench, round_number)
            if not single:
                samples.add_rank_times([control.rank_ns / len(burst) for control in side.controls])


def _check_round(bench: Bench, round_number: int) -> None:
    checks = bench.panel.check("timed", SUBMISSION)
    if any(check.verdict is not Verdict.OK for check in checks):
        raise first_fault(checks, f"timed round {round_number}")


def _timed_bursts(side: Ranks, panel: Panel, bursts: list[tuple[int, ...]]) -> list[float]:
    """Microseconds a call of each burst; its inputs are written when it begins, not before."""
    panel.clear("timed", side.side)
    return [_burst_ns(side, panel, burst) / 1e3 / len(burst) for burst in bursts]


def _burst_ns(side: Ranks, panel: Panel, burst: tuple[int, ...], max_skew_s: float = 0.0) -> int:
    """Judge's wall time from the first rank's go until the last rank is done."""
    side.arm()
    sequence = side.stage(Command.CALL, burst)
    began_ns = panel.release(side.side, burst, sequence, max_skew_s)
    side.wait()
    return time.perf_counter_ns() - began_ns


@contextlib.contextmanager
def _blame(side: Ranks) -> Iterator[None]:
    """The reference runs our code: whatever happens to it is never the submitter's fault."""
    try:
        yield
    except Fault as fault:
        if side.side == SUBMISSION:
            raise
        raise EvaluatorError(f"the reference failed: {fault.message}") from fault


def _end(side: Ranks, findings: Findings) -> None:
    logs = side.kill()
    if side.side == SUBMISSION:
        findings.logs = logs


def preload() -> None:
    """Import what every judge imports, torch among it; judges forked from here start with it."""
    from evaluator import panel  # noqa: F401


def main() -> int:
    """One judge, in a process of its own; the supervisor in `evaluate` reads what it prints."""
    from evaluator.protocol import read_job, send_error, send_progress, send_report

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Nothing that is imported or run here may print into the channel to the supervisor.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        send_report(channel, judge(read_job(sys.stdin), lambda p: send_progress(channel, p)))
    except Exception as error:  # noqa: BLE001 - a process boundary: the supervisor raises it again
        send_error(channel, error)
        return 1
    return 0
