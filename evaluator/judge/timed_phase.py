"""Runs the timed phase: batches of the submission and of the reference, every answer compared."""

from __future__ import annotations

import contextlib
import statistics
import time

from evaluator.buffers.control_page import Command
from evaluator.diagnosis.diagnose import first_fault
from evaluator.host import gpus
from evaluator.judge.run_context import RunContext, blame, paused, timed_batch_ns
from evaluator.messages.faults import Fault
from evaluator.messages.report import Verdict
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import timing
from evaluator.timing.timing import PACES

SINGLE_ROUNDS, MORE_SINGLE_ROUNDS, SINGLE_CALLS = 1, 4, 16


def time_both(context: RunContext) -> None:
    """Time batches of both sides in ABBA order over inputs that neither has seen before the
    batch."""
    oracle, samples = context.oracle, timing.Samples(batch_calls=context.oracle.batch_calls)
    if not context.is_reference_called:
        context.start(context.reference)
        context.wait_ready(context.reference)
    context.give_slabs(context.reference)
    _load_timed(context)
    _warm_up(context, samples)
    if context.host.cores:  # not before: threads that calls start inherit where their starter is
        for side in (context.submission, context.reference):
            side.pin(context.host.cores.launching)
        _load_timed(context)
    for round_number in range(SINGLE_ROUNDS):
        _round(context, samples, round_number, single=True)
    pace = PACES[context.job.device]
    # The reference's calls decide: nothing that the kernel does may choose how it is timed.
    oracle.shorten_batch(pace.long_enough(statistics.median(samples.baseline_single_us)))
    samples.batch_calls = oracle.batch_calls
    began, rounds = time.monotonic(), 0
    while not timing.enough(rounds, oracle.batch_calls, time.monotonic() - began, pace):
        _round(context, samples, rounds, single=False)
        rounds += 1
        context.emit(timing.progress(rounds, oracle.batch_calls, pace))
    if timing.is_faster_only_together(samples.per_call()):
        for round_number in range(MORE_SINGLE_ROUNDS):
            _round(context, samples, round_number, single=True)
    context.findings.gpus = gpus.states(context.host.gpus)
    context.findings.timing, flags = timing.summarise(samples)
    context.findings.flags += flags


def _load_timed(context: RunContext) -> None:
    for side in (context.submission, context.reference):
        with blame(side):
            side.load(context.oracle.plans("timed"))


def _warm_up(context: RunContext, samples: timing.Samples) -> None:
    """Make untimed calls of both sides, side by side. Inputs stay, unless calls change them."""
    oracle, sides = context.oracle, (context.submission, context.reference)
    batch = tuple(range(oracle.batch_calls))
    began, pace = time.monotonic(), PACES[context.job.device]
    while samples.warmup_calls < timing.WARMUP_CALLS or not _has_passed(began, pace.least_warmup_s):
        for side in sides:
            if oracle.mutates or not samples.warmup_calls:
                oracle.clear("timed", side.side)
                oracle.release(side.side, batch, side.stage(Command.CALL, batch))
            else:
                side.begin(batch)
        for side in sides:
            with blame(side):
                side.wait()
        samples.warmup_calls += len(batch)
        if _has_passed(began, pace.most_warmup_s):
            return


def _has_passed(began: float, seconds: float) -> bool:
    return time.monotonic() - began >= seconds


def _round(
    context: RunContext, samples: timing.Samples, round_number: int, *, single: bool
) -> None:
    """Time fresh inputs, one batch of each side (or single calls), and compare every output.

    That of the reference only in single calls: it has been right in all trials, and that it is at
    work for this run, too, one round shows.
    """
    if context.oracle.refresh():
        _load_timed(context)
    batch = context.oracle.shuffled_batch()
    if single:
        batch = batch[:SINGLE_CALLS]
    batches = [(index,) for index in batch] if single else [batch]
    locks = context.oracle.chain_inputs("timed", () if single else batch)
    samples.is_open |= any(node is None for plan in locks for node in plan["locks"][1:])
    sides = [context.submission, context.reference]
    for side in sides if round_number % 2 == 0 else reversed(sides):
        context.oracle.clear("timed", side.side)
        if not single:
            side.chain_inputs(locks)
        walls_us = [_timed_us(context, side, own) for own in batches]
        is_kernel = side is context.submission
        samples.add(is_kernel, walls_us, single=single)
        if not single:
            samples.add_rank_times(is_kernel, [own.rank_ns for own in side.controls])
        if is_kernel or single:
            _check_round(context, side, batch, round_number)
        if not is_kernel:
            samples.empty_us.append(_timed_us(context, side, ()))


def _timed_us(context: RunContext, side: RankGroup, batch: tuple[int, ...]) -> float:
    """Return the microseconds of a batch. The other side stands still in the meantime."""
    other = context.reference if side is context.submission else context.submission
    with contextlib.ExitStack() as stack:
        stack.enter_context(paused(other))
        if not context.oracle.is_gpu_idle():
            message = "a GPU is busy for long while no call is going on"
            raise Fault(Verdict.PROTOCOL_VIOLATION, "busy_gpu", message)
        stack.enter_context(blame(side))
        return timed_batch_ns(side, context.oracle, batch) / 1e3


def _check_round(
    context: RunContext, side: RankGroup, called: tuple[int, ...], round_number: int
) -> None:
    checks = context.oracle.check("timed", side.side, called)
    if any(check.verdict is not Verdict.OK for check in checks):
        with blame(side):
            raise first_fault(checks, f"timed round {round_number}")
