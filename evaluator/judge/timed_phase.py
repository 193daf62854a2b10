"""Runs the timed phase: batches of the submission and of the reference, every answer compared."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence

from evaluator.buffers.control_page import Command
from evaluator.diagnosis.diagnose import first_fault
from evaluator.host import gpus
from evaluator.judge.run_context import RunContext, TimedBatch, blame, paused, timed_batch
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
        with context.submission.paused():  # helpers that it left at work would be in the way
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
    batch = oracle.shuffled_batch()
    chains = oracle.chain_inputs("timed", batch, locked=False)
    for side in sides:
        with blame(side):
            side.chain_inputs(chains)
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
    work for this run, too, one round shows. An empty batch of the reference tells what one costs
    beside its calls.
    """
    if context.oracle.refresh():
        _load_timed(context)
    batch = context.oracle.shuffled_batch()
    if single:
        batch = batch[:SINGLE_CALLS]
    batches = [(index,) for index in batch] if single else [batch]
    chains = context.oracle.chain_inputs("timed", batch, locked=not single)
    samples.is_open |= not single and any(None in plan["locks"][1:] for plan in chains)
    sides = [context.submission, context.reference]
    for side in sides if round_number % 2 == 0 else reversed(sides):
        context.oracle.clear("timed", side.side)
        with blame(side):
            side.chain_inputs(chains)
        timed = [_timed(context, side, own) for own in batches]
        is_kernel = side is context.submission
        samples.add(is_kernel, [own.wall_ns / 1e3 for own in timed], single=single)
        if not single:
            samples.add_rank_times(is_kernel, [own.rank_ns for own in side.controls])
        if is_kernel or single:
            _check_round(context, side, batch, timed, round_number)
        if not is_kernel:
            empty = [_timed(context, side, own, empty=True) for own in batches]
            samples.add_empty([own.wall_ns / 1e3 for own in empty], single=single)


def _timed(
    context: RunContext, side: RankGroup, batch: tuple[int, ...], *, empty: bool = False
) -> TimedBatch:
    """Time a batch and snapshot it. The other side stands still in the meantime, and this one while
    its slab is copied."""
    other = context.reference if side is context.submission else context.submission
    with contextlib.ExitStack() as stack:
        stack.enter_context(paused(other))
        if not context.oracle.is_gpu_idle():
            message = "a GPU is busy for long while no call is going on"
            raise Fault(Verdict.PROTOCOL_VIOLATION, "busy_gpu", message)
        stack.enter_context(blame(side))
        found = timed_batch(side, context.oracle, batch, empty=empty)
        if not empty:
            with side.paused():
                context.oracle.snapshot("timed", side.side, batch)
        return found


def _check_round(
    context: RunContext,
    side: RankGroup,
    called: tuple[int, ...],
    timed: Sequence[TimedBatch],
    round_number: int,
) -> None:
    """Raise Fault for a wrong output, or for one that came after its rank said it was done."""
    checks = context.oracle.check("timed", called)
    early = sorted({rank for batch in timed for rank in batch.early_ranks})
    with blame(side):
        if any(check.verdict is not Verdict.OK for check in checks):
            raise first_fault(checks, f"timed round {round_number}")
        if early:
            message = f"rank {early[0]} said it was done before its GPU had written every output"
            raise Fault(Verdict.LATE_OUTPUT, "unwritten", message, ranks=early)
