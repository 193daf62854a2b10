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
from evaluator.messages.report import OutputCheck, Verdict
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
    context.load_timed()
    _warm_up(context, samples)
    if context.host.cores:  # not before: threads that calls start inherit where their starter is
        for side in (context.submission, context.reference):
            side.pin(context.host.cores.launching)
        context.load_timed()
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
    """Time the reference, now that the submission has ended, and sum up: what a kernel left to slow
    it down is gone."""
    _warm_up_alone(context)
    if timing.may_hide_merging(samples):
        samples.single_alone = _nothing_alone(samples.single)
        _round_alone(context, samples.single_alone)
    if not samples.is_disturbed:
        samples.alone = _nothing_alone(samples.scored)
        _time_scored_alone(context, samples, samples.alone)
    if lost := timing.lost_in_noise(samples):
        raise EvaluatorError(lost)
    context.findings.timing, flags = timing.summarise(samples)
    if alone := samples.alone or samples.single_alone:
        context.findings.noise_us = _noise_us(alone)
    context.findings.flags += flags


def _nothing_alone(walls: timing.Walls) -> timing.Walls:
    return replace(walls, kernel=[], baseline=[], empty=[], skew=[])


def _noise_us(alone: timing.Walls) -> float:
    """Return by how much a call may have taken longer than is told: by how empty batches scatter,
    and by how far apart ranks begin. An empty batch lasts until the last rank is done, but one that
    only sends to others need not wait for them to begin."""
    return (timing.spread_of_empty(alone) + statistics.median(alone.skew)) / alone.calls


def _time_scored_alone(context: RunContext, samples: timing.Samples, alone: timing.Walls) -> None:
    """Time what is scored: a few rounds where each of them excludes that the reference was
    disturbed, else as many as beside the submission; more where empty batches still scatter beyond
    measure, as what is left of the dead takes the kernel a while."""
    began, pace = time.monotonic(), PACES[context.job.device]
    as_many = len(samples.scored.kernel) // alone.per_round
    for done in range(1, paces.MOST_ALONE * as_many + 1):
        _round_alone(context, alone)
        is_enough = done >= as_many or (done >= paces.ALONE_ROUNDS and samples.is_settled)
        if is_enough and timing.lost_in_noise(samples) is None:
            return
        if done >= paces.LEAST_ROUNDS and _has_passed(began, pace.most_timed_s):
            return


def _warm_up_alone(context: RunContext) -> None:
    """Make calls of the reference that nobody times: it has rested while the submission ended."""
    oracle, reference = context.oracle, context.reference
    oracle.clear("timed", reference.side)
    chains = oracle.chain_inputs("timed", oracle.shuffled_batch(), locked=False)
    with blame(reference):
        reference.chain_inputs(chains)
        began = time.monotonic()
        while not _has_passed(began, PACES[context.job.device].alone_warmup_s):
            reference.warm_up(oracle.warm_up_calls)


def _round_alone(context: RunContext, walls: timing.Walls) -> None:
    """Time a round of the reference over fresh inputs, as beside the submission: what calls of the
    same shapes have left makes the next ones faster."""
    oracle, reference, is_single = context.oracle, context.reference, walls.calls == 1
    if oracle.refresh():
        with blame(reference):
            reference.load(oracle.plans("timed"))
    batch = oracle.shuffled_batch()[: walls.per_round * walls.calls]
    batches = [(index,) for index in batch] if is_single else [batch]
    oracle.clear("timed", reference.side)
    with blame(reference):
        reference.chain_inputs(oracle.chain_inputs("timed", batch, locked=not is_single))
    own = _timed(context, reference, batches)
    empty = _timed(context, reference, batches, made=walls.spare)
    walls.baseline.extend(batch.wall_us for batch in own)
    walls.empty.extend(batch.wall_us for batch in empty)
    walls.skew.extend(batch.skew_us for batch in empty)


def _long_enough(context: RunContext) -> int:
    """Return how many calls make a batch long enough, from a round of single calls that are not
    scored: the first are slower. Those of the reference decide, as nothing that a kernel does may
    choose how it is timed."""
    trial = timing.Samples(batches=timing.Walls(calls=1), single=timing.Walls(calls=1))
    _round(context, trial, 0, single=True)
    return PACES[context.job.device].long_enough(statistics.median(trial.single.baseline_us))


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
    context.renew_timed()
    batch = context.oracle.shuffled_batch()
    if single:
        batch = batch[:SINGLE_CALLS]
    batches = [(index,) for index in batch] if single else [batch]
    with context.submission.paused():
        chains = context.oracle.chain_inputs("timed", batch, locked=not single)
    samples.is_open |= not single and _has_gaps(chains)
    walls = samples.single if single else samples.batches
    sides = [context.submission, context.reference]
    for side in sides if round_number % 2 == 0 else reversed(sides):
        is_kernel = side is context.submission
        with paused(context.reference if is_kernel else context.submission):
            context.oracle.clear("timed", side.side)
            with blame(side):
                side.chain_inputs(chains)
            timed = _timed(context, side, batches)
            empty = [] if is_kernel else _timed(context, side, batches, made=walls.spare)
        (walls.kernel if is_kernel else walls.baseline).extend(own.wall_us for own in timed)
        walls.empty.extend(own.wall_us for own in empty)
        if single == samples.is_open:
            for own in timed:
                samples.add_rank_times(is_kernel, own.rank_ns, len(batches[0]))
        if is_kernel or single:
            with paused(context.submission):
                checks = context.oracle.check("timed", batch)
            _judge_round(side, checks, timed, round_number)


def _timed(
    context: RunContext,
    side: RankGroup,
    batches: Sequence[tuple[int, ...]],
    *,
    made: int | None = None,
) -> list[TimedBatch]:
    """Time batches one by one, each over inputs that were written after the one before."""
    found = []
    for batch in batches:
        _wait_for_idle_gpus(context)
        with blame(side):
            found.append(timed_batch(side, context.oracle, batch, made=made))
    return found


def _wait_for_idle_gpus(context: RunContext) -> None:
    """Wait until nobody computes there. Raises Fault where the submission goes on and on, and
    EvaluatorError where it can be nobody's but ours or a stranger's."""
    if context.oracle.is_gpu_idle():
        return
    context.host.refuse_others()
    message = "a GPU is busy for long while no call is going on"
    if context.submission.is_ended:
        raise EvaluatorError(message)
    raise Fault(Verdict.PROTOCOL_VIOLATION, "busy_gpu", message)


def _judge_round(
    side: RankGroup,
    checks: Sequence[OutputCheck],
    timed: Sequence[TimedBatch],
    round_number: int,
) -> None:
    """Raise Fault for a wrong output, or for one that came after its rank said it was done."""
    early = sorted({rank for batch in timed for rank in batch.early_ranks})
    with blame(side):
        if any(check.verdict is not Verdict.OK for check in checks):
            raise first_fault(checks, f"timed round {round_number}")
        if early:
            message = f"rank {early[0]} said it was done before its GPU had written every output"
            raise Fault(Verdict.LATE_OUTPUT, "unwritten", message, ranks=early)
