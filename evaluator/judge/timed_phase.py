"""The timed phase: bursts of the submission and of the reference, every answer compared."""

from __future__ import annotations

import contextlib
import statistics
import time

from evaluator.buffers.control_page import Command
from evaluator.diagnosis.diagnose import first_fault
from evaluator.host import gpus
from evaluator.judge.run_context import Bench, blame, timed_burst_ns
from evaluator.messages.faults import Fault
from evaluator.messages.report import Verdict
from evaluator.sandbox.rank_group import Ranks
from evaluator.timing import timing
from evaluator.timing.timing import PACES

SINGLE_ROUNDS, MORE_SINGLE_ROUNDS, SINGLE_CALLS = 1, 4, 16


def time_both(bench: Bench) -> None:
    """Bursts of both sides in ABBA order over inputs that neither has seen before the burst."""
    panel, samples = bench.panel, timing.Samples(burst_calls=bench.panel.burst_calls)
    if not bench.is_reference_called:
        bench.start(bench.reference)
        bench.greet(bench.reference)
    bench.give_slabs(bench.reference)
    _load_timed(bench)
    _warm_up(bench, samples)
    if bench.host.cores:  # not before: threads that calls start inherit where their starter is
        for side in (bench.submission, bench.reference):
            side.pin(bench.host.cores.launching)
        _load_timed(bench)
    for round_number in range(SINGLE_ROUNDS):
        _round(bench, samples, round_number, single=True)
    pace = PACES[bench.job.device]
    # The reference's calls decide: nothing that the kernel does may choose how it is timed.
    panel.shorten_burst(pace.long_enough(statistics.median(samples.baseline_single_us)))
    samples.burst_calls = panel.burst_calls
    began, rounds = time.monotonic(), 0
    while not timing.enough(rounds, panel.burst_calls, time.monotonic() - began, pace):
        _round(bench, samples, rounds, single=False)
        rounds += 1
        bench.emit(timing.progress(rounds, panel.burst_calls, pace))
    if timing.is_faster_only_together(samples.per_call()):
        for round_number in range(MORE_SINGLE_ROUNDS):
            _round(bench, samples, round_number, single=True)
    bench.findings.gpus = gpus.states(bench.host.gpus)
    bench.findings.timing, flags = timing.summarise(samples)
    bench.findings.flags += flags


def _load_timed(bench: Bench) -> None:
    for side in (bench.submission, bench.reference):
        with blame(side):
            side.load(bench.panel.plans("timed"))


def _warm_up(bench: Bench, samples: timing.Samples) -> None:
    """Untimed calls of both sides, side by side. Inputs stay, unless calls change them."""
    panel, sides = bench.panel, (bench.submission, bench.reference)
    burst = tuple(range(panel.burst_calls))
    began, pace = time.monotonic(), PACES[bench.job.device]
    while samples.warmup_calls < timing.WARMUP_CALLS or not _has_passed(began, pace.least_warmup_s):
        for side in sides:
            if panel.mutates or not samples.warmup_calls:
                panel.clear("timed", side.side)
                panel.release(side.side, burst, side.stage(Command.CALL, burst))
            else:
                side.begin(burst)
        for side in sides:
            with blame(side):
                side.wait()
        samples.warmup_calls += len(burst)
        if _has_passed(began, pace.most_warmup_s):
            return


def _has_passed(began: float, seconds: float) -> bool:
    return time.monotonic() - began >= seconds


def _round(bench: Bench, samples: timing.Samples, round_number: int, *, single: bool) -> None:
    """Fresh inputs, one burst of each side (or single calls), then every output of the submission
    compared. The reference has been right in all trials: that it is at work for this run, too, one
    round shows."""
    if bench.panel.refresh():
        _load_timed(bench)
    burst = bench.panel.shuffled_burst()
    if single:
        burst = burst[:SINGLE_CALLS]
    bursts = [(index,) for index in burst] if single else [burst]
    locks = bench.panel.lock("timed", () if single else burst)
    samples.is_open |= any(node is None for plan in locks for node in plan["locks"][1:])
    sides = [bench.submission, bench.reference]
    for side in sides if round_number % 2 == 0 else reversed(sides):
        bench.panel.clear("timed", side.side)
        if not single:
            side.lock(locks)
        walls_us = [_timed_us(bench, side, own) for own in bursts]
        is_kernel = side is bench.submission
        samples.add(is_kernel, walls_us, single=single)
        if not single:
            samples.add_rank_times(is_kernel, [own.rank_ns for own in side.controls])
        if is_kernel or single:
            _check_round(bench, side, burst, round_number)
        if not is_kernel:
            samples.empty_us.append(_timed_us(bench, side, ()))


def _timed_us(bench: Bench, side: Ranks, burst: tuple[int, ...]) -> float:
    """Microseconds of a burst. The other side stands still in the meantime."""
    other = bench.reference if side is bench.submission else bench.submission
    with contextlib.ExitStack() as stack:
        stack.enter_context(other.paused())
        if not bench.panel.is_calm():
            message = "a GPU is busy for long while no call is going on"
            raise Fault(Verdict.PROTOCOL_VIOLATION, "busy_gpu", message)
        stack.enter_context(blame(side))
        return timed_burst_ns(side, bench.panel, burst) / 1e3


def _check_round(bench: Bench, side: Ranks, called: tuple[int, ...], round_number: int) -> None:
    checks = bench.panel.check("timed", side.side, called)
    if any(check.verdict is not Verdict.OK for check in checks):
        with blame(side):
            raise first_fault(checks, f"timed round {round_number}")
