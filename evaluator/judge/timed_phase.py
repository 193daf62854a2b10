"""Times the calls of a side, alone, each over fresh inputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.buffers.control_page import Command
from evaluator.diagnosis.diagnose import first_fault
from evaluator.judge.early_sends import Watch, watching
from evaluator.judge.gated_call import GatedCall, Keys, check_commitments, draw_keys, launch, settle
from evaluator.judge.run_context import RunContext, blame
from evaluator.messages.job import Device
from evaluator.messages.report import OutputCheck, Phase, Progress, Verdict
from evaluator.sandbox.rank_group import RankGroup
from evaluator.timing import pace
from evaluator.timing.timing import Times

GATED_DEVICES = frozenset({Device.CUDA})
WARM_UPS = 8  # of each call that may be made to warm up, between two looks at the clock


@dataclass(frozen=True, kw_only=True)
class Round:
    """Holds what one round found: the microseconds of each call that was timed, and of each rank's
    calls their checks."""

    us: list[float]
    ahead: list[bool]
    checks: Sequence[OutputCheck]


def time_side(context: RunContext, side: RankGroup) -> Times:
    """Time a side's calls. Raises Fault for a wrong, late or missing output of the submission.

    The reference also makes calls without a solution, which tell what surrounds a call.
    """
    found, is_gated = Times(), context.job.device in GATED_DEVICES
    found.warmup_calls = _warm_up(context, side)
    with watching(context.host.gpus) as watch:
        began, rounds = time.monotonic(), 0
        while not pace.enough(
            len(found.calls),
            watch.calls if is_gated else pace.LEAST_WATCHED,
            elapsed_s := time.monotonic() - began,
        ):
            watch.is_due = elapsed_s > pace.MOST_TIMED_S and len(found.calls) >= pace.LEAST_CALLS
            context.renew_timed(side)
            own = _round(context, side, watch, ahead_ms=pace.ahead_ms(found.ahead))
            _judge_round(side, own.checks, f"timed round {rounds}")
            found.calls += own.us
            found.ahead += own.ahead
            if side is context.reference and (is_gated or not rounds):
                found.empty += _round(
                    context, side, watch, ahead_ms=pace.ahead_ms(), is_empty=True
                ).us
            rounds += 1
            done = min(len(found.calls), pace.TIMED_CALLS)
            context.emit(Progress(phase=Phase.TIMED, done=done, total=pace.TIMED_CALLS))
        if is_gated:
            found.eager = _eager_calls(context, side, watch)
    if is_gated and side is context.reference:
        found.series.append(time_series(context, side)[0])
        found.empty_series.append(time_series(context, side, is_empty=True)[0])
    return found


def time_series(
    context: RunContext,
    side: RankGroup,
    batch: tuple[int, ...] | None = None,
    *,
    is_empty: bool = False,
) -> tuple[float, list[list[list[OutputCheck]]]]:
    """Make calls back to back behind one gate; return the microseconds of one, and by rank and call
    the checks of its outputs."""
    oracle = context.oracle
    batch = batch or oracle.shuffled_batch()
    keys = draw_keys(context.job.world_size, [batch])
    command = Command.GATED_EMPTY if is_empty else Command.GATED
    with blame(side):
        for part in oracle.parts(batch):
            _seal(context, side, part, keys)
            side.warm_up(oracle.warm_up_calls)
            oracle.put(side.side, part)
        found = launch(side, batch, keys, command=command, ahead_ms=pace.ahead_ms())
        if is_empty:
            return found.us / len(batch), []
        checks = _checked(context, side, [found], keys)
    return found.us / len(batch), checks


def _warm_up(context: RunContext, side: RankGroup) -> int:
    """Make calls that nobody times; return how many."""
    oracle, began, made = context.oracle, time.monotonic(), 0
    with blame(side):
        # Not before calls have been made: threads that they start inherit where their starter is.
        if context.host.cores:
            side.pin(context.host.cores.launching)
        side.load(oracle.plans("timed"))
        least_s = pace.LEAST_WARMUP_S if context.job.device is Device.CUDA else 0.0
        while made < pace.LEAST_WARMUP_CALLS or not _has_passed(began, least_s):
            oracle.clear("timed", side.side)
            side.warm_up(oracle.warm_up_calls * WARM_UPS)
            made += len(oracle.warm_up_calls) * WARM_UPS
            if _has_passed(began, pace.MOST_WARMUP_S):
                break
    return made


def _has_passed(began: float, seconds: float) -> bool:
    return time.monotonic() - began >= seconds


def _eager_calls(context: RunContext, side: RankGroup, watch: Watch) -> list[float]:
    """Return the microseconds of calls of which nothing is queued ahead."""
    context.renew_timed(side)
    batch = context.oracle.shuffled_batch()[: pace.EAGER_CALLS]
    own = _gated_round(context, side, watch, batch, ahead_ms=0)
    _judge_round(side, own.checks, "calls with nothing queued ahead")
    return own.us


def _round(
    context: RunContext, side: RankGroup, watch: Watch, *, ahead_ms: float, is_empty: bool = False
) -> Round:
    batch = context.oracle.shuffled_batch()
    if context.job.device in GATED_DEVICES:
        return _gated_round(context, side, watch, batch, ahead_ms=ahead_ms, is_empty=is_empty)
    return _frozen_round(context, side, batch, is_empty=is_empty)


def _gated_round(
    context: RunContext,
    side: RankGroup,
    watch: Watch,
    batch: tuple[int, ...],
    *,
    ahead_ms: float,
    is_empty: bool = False,
) -> Round:
    """Make calls over inputs that are sealed until the clock starts, and time those that nobody
    watches. Each one's inputs come when those before are done: so long nothing can be sent ahead
    of them. Before that comes a call that warms up: a kernel whose code is not in a GPU's caches
    takes up to 2 us longer, and one that means to gain could have it there."""
    oracle, made, timed = context.oracle, list[GatedCall](), list[GatedCall]()
    command = Command.GATED_EMPTY if is_empty else Command.GATED
    keys = draw_keys(context.job.world_size, [(slot,) for slot in batch])
    emptied, warm = oracle.warm_up_calls
    with blame(side):
        for part in oracle.parts(batch):
            _seal(context, side, part, keys)
            for slot in part:
                side.warm_up((warm,))
                is_watched = watch.begin() and ahead_ms > 0 and not is_empty
                watch.put(oracle.put(side.side, (slot,)))
                settle(side, emptied)
                check = watch.check if is_watched else None
                own = launch(side, (slot,), keys, command=command, ahead_ms=ahead_ms, at_gate=check)
                made.append(own)
                if not is_watched and watch.is_prompt(own.opened_s):
                    timed.append(own)
        found = [] if is_empty else _checked(context, side, made, keys)
    return Round(
        us=[own.us for own in timed],
        ahead=[own.is_ahead for own in timed],
        checks=[check for calls in found for own in calls for check in own],
    )


def _seal(
    context: RunContext, side: RankGroup, slots: tuple[int, ...], keys: Sequence[Keys]
) -> None:
    """Have the inputs of these calls sealed, and those of the calls that warm up whole again."""
    context.oracle.clear("timed", side.side)
    context.oracle.seal(side.side, [{slot: own[slot] for slot in slots} for own in keys])


def _checked(
    context: RunContext, side: RankGroup, made: Sequence[GatedCall], keys: Sequence[Keys]
) -> list[list[list[OutputCheck]]]:
    """Compare every output with the truth and with what its rank committed to; return the checks
    by rank and call."""
    oracle, batch = context.oracle, tuple(slot for own in made for slot in own.slots)
    with side.paused():
        oracle.snapshot("timed", side.side, batch)
        checks = oracle.check_calls("timed", batch)
        if all(c.verdict is Verdict.OK for calls in checks for own in calls for c in own):
            check_commitments(side, oracle, made, keys)
    return checks


def _frozen_round(
    context: RunContext, side: RankGroup, batch: tuple[int, ...], *, is_empty: bool = False
) -> Round:
    """Time each call of ranks that stand still until its inputs are there, and again once they are
    done: on a processor nothing can be queued ahead."""
    oracle, us = context.oracle, list[float]()
    oracle.clear("timed", side.side)
    with blame(side):
        for slot in batch:
            side.arm()
            sequence = side.stage(Command.EMPTY if is_empty else Command.CALL, (slot,))
            with side.paused():
                oracle.release(side.side, (slot,), sequence)
                began_ns = time.perf_counter_ns()
            side.wait()
            with side.paused():
                us.append((time.perf_counter_ns() - began_ns) / 1e3)
                oracle.snapshot("timed", side.side, (slot,))
        checks: Sequence[OutputCheck] = ()
        if not is_empty:
            with side.paused():
                checks = oracle.check("timed", batch)
    return Round(us=us, ahead=[], checks=checks)


def _judge_round(side: RankGroup, checks: Sequence[OutputCheck], where: str) -> None:
    """Raise Fault for a wrong output."""
    with blame(side):
        if any(check.verdict is not Verdict.OK for check in checks):
            raise first_fault(checks, where)
