"""Runs the timed phase: batches of the submission and of the reference, every answer compared, and
some of the reference alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evaluator.buffers.control_page import Command
from evaluator.diagnosis.diagnose import first_fault
from evaluator.host import gpus
from evaluator.judge.run_context import RunContext, TimedBatch, blame, paused, timed_batch
from evaluator.messages.faults import EvaluatorError, Fault
from evaluator.messages.report import Verdict
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import pace as paces
from evaluator.timing import timing
from evaluator.timing.pace import PACES

if TYPE_CHECKING:
    from evaluator.buffers.input_locks import Chain

MORE_SINGLE_ROUNDS, SINGLE_CALLS = 4, paces.SINGLE_CALLS


def time_both(context: RunContext) -> timing.Samples:
    """Time batches of both sides in ABBA order over inputs that neither has seen before the
    batch."""
    oracle, singles = context.oracle, min(SINGLE_CALLS, context.oracle.batch_calls)
    batches = timing.Walls(calls=oracle.batch_calls)
    samples = timing.Samples(batches=batches, single=timing.Walls(calls=1, per_round=singles))
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
    calls = _long_enough(context)
    pace, samples.is_open = PACES[context.job.device], _is_open(context)
    oracle.shorten_batch(SINGLE_CALLS if samples.is_open else calls)
    batches.calls = oracle.batch_calls
    batches.spare = pace.spare_calls if batches.calls >= pace.least_calls else 0
    began, rounds, single = time.monotonic(), 0, samples.is_open
    while not paces.enough(rounds, oracle.batch_calls, time.monotonic() - began, pace):
        _round(context, samples, rounds, single=single)
        rounds += 1
        context.emit(paces.progress(rounds, oracle.batch_calls, pace))
    if not single:
        _round(context, samples, rounds, single=True)
        if samples.is_open or timing.is_suspect(samples):
            for round_number in range(MORE_SINGLE_ROUNDS):
                _round(context, samples, round_number, single=True)
    context.findings.gpus = gpus.states(context.host.gpus)
    return samples


def time_alone(context: RunContext, samples: timing.Samples) -> None:
    """Time the reference, now that the submission has ended, and sum up.

    What a kernel left to slow it down is gone. Where the reference is a quarter faster now, it is
    timed as often as it was beside the submission, and that is the score.
    """
    scored, pace = samples.scored, PACES[context.job.device]
    samples.alone = replace(scored, kernel=[], baseline=[], empty=[])
    began, rounds = time.monotonic(), len(scored.kernel) // scored.per_round
    for round_number in range(rounds):
        if round_number == paces.ALONE_ROUNDS and not samples.is_disturbed:
            break
        _round_alone(context, samples.alone, 0.0 if round_number else pace.least_warmup_s)
        if round_number >= paces.LEAST_ROUNDS and _has_passed(began, pace.most_timed_s):
            break
    if lost := timing.lost_in_noise(samples):
        raise EvaluatorError(lost)
    context.findings.timing, flags = timing.summarise(samples)
    context.findings.flags += flags


def _round_alone(context: RunContext, walls: timing.Walls, warmup_s: float) -> None:
    """Time a round of the reference; inputs are those of the last round."""
    oracle, reference, is_single = context.oracle, context.reference, walls.calls == 1
    batch = oracle.shuffled_batch()[: walls.per_round * walls.calls]
    batches = [(index,) for index in batch] if is_single else [batch]
    oracle.clear("timed", reference.side)
    with blame(reference):
        reference.chain_inputs(oracle.chain_inputs("timed", batch, locked=not is_single))
        began = time.monotonic()
        while not _has_passed(began, warmup_s):
            reference.warm_up(oracle.warm_up_calls)
        own = [timed_batch(reference, oracle, called) for called in batches]
        empty = [timed_batch(reference, oracle, called, made=walls.spare) for called in batches]
    walls.baseline.extend(batch.wall_us for batch in own)
    walls.empty.extend(batch.wall_us for batch in empty)


def _long_enough(context: RunContext) -> int:
    """Return how many calls make a batch long enough, from a round of single calls that are not
    scored: the first are slower. Those of the reference decide, as nothing that a kernel does may
    choose how it is timed."""
    trial = timing.Samples(batches=timing.Walls(calls=1), single=timing.Walls(calls=1))
    _round(context, trial, 0, single=True)
    return PACES[context.job.device].long_enough(statistics.median(trial.single.baseline_us))


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
    while samples.warmup_calls < paces.WARMUP_CALLS or not _has_passed(began, pace.least_warmup_s):
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


def _is_open(context: RunContext) -> bool:
    """Return whether the inputs of a batch cannot be chained."""
    batch = context.oracle.shuffled_batch()
    return _has_gaps(context.oracle.chain_inputs("timed", batch, locked=True))


def _has_gaps(chains: Sequence[Chain]) -> bool:
    return any(None in plan["locks"][1:] for plan in chains)


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
    samples.is_open |= not single and _has_gaps(chains)
    walls = samples.single if single else samples.batches
    sides = [context.submission, context.reference]
    for side in sides if round_number % 2 == 0 else reversed(sides):
        context.oracle.clear("timed", side.side)
        with blame(side):
            side.chain_inputs(chains)
        timed = _timed(context, side, batches)
        is_kernel = side is context.submission
        (walls.kernel if is_kernel else walls.baseline).extend(own.wall_us for own in timed)
        if single == samples.is_open:
            for own in timed:
                samples.add_rank_times(is_kernel, own.rank_ns, len(batches[0]))
        if is_kernel or single:
            _check_round(context, side, batch, timed, round_number)
        if not is_kernel:
            empty = _timed(context, side, batches, made=walls.spare)
            walls.empty.extend(own.wall_us for own in empty)


def _timed(
    context: RunContext,
    side: RankGroup,
    batches: Sequence[tuple[int, ...]],
    *,
    made: int | None = None,
) -> list[TimedBatch]:
    """Time batches one by one, each over inputs that were written after the one before. The other
    side stands still in the meantime."""
    other = context.reference if side is context.submission else context.submission
    found = []
    with paused(other):
        for batch in batches:
            if not context.oracle.is_gpu_idle():
                message = "a GPU is busy for long while no call is going on"
                raise Fault(Verdict.PROTOCOL_VIOLATION, "busy_gpu", message)
            with blame(side):
                found.append(timed_batch(side, context.oracle, batch, made=made))
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
