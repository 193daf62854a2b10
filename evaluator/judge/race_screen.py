"""Screens a kernel that is right call by call for races between calls.

Calls follow each other with nothing between, each over inputs of its own: without a delay, then
with one rank late before each call, and some over new inputs in the same tensors. Where answers are
wrong, the same calls are made again with all ranks met before each: if those are right, the next
call overwrites what a peer has still to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.buffers.control_page import Command
from evaluator.diagnosis.diagnose import first_fault
from evaluator.judge.run_context import RunContext
from evaluator.judge.timed_phase import GATED_DEVICES, time_series
from evaluator.messages.faults import Fault
from evaluator.messages.job import Placement
from evaluator.messages.report import OutputCheck, Progress, Verdict
from evaluator.timing.pace import RENEWED_RACE_CALLS, race_series

LATE_S = 0.005  # two of the turns that processes on one GPU take
WRONG_VALUES = (Verdict.OUTPUT_MISMATCH, Verdict.NONFINITE_OUTPUT)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Describes calls in a row: their slots, for each the rank that is late, and whether all ranks
    meet before each."""

    batch: tuple[int, ...]
    late: tuple[int | None, ...]
    is_spaced: bool = False

    def __str__(self) -> str:
        how = "with barriers between them" if self.is_spaced else "back to back"
        return f"calls {how}{', a rank late' if any(r is not None for r in self.late) else ''}"


def screen_races(context: RunContext) -> list[float]:
    """Raise Fault for a kernel that is wrong, or hangs, where its calls follow each other.

    Returns the microseconds of a call back to back, where they are timed.
    """
    times: list[float] = []
    if context.job.placement is Placement.FULL:  # it has seen what was timed
        context.renew_timed(context.submission)
    context.submission.load(context.oracle.plans("timed"))
    for number, is_late in enumerate((False, True)):
        if is_late:  # what was kept for their tensors is wrong now
            context.renew_timed(context.submission, RENEWED_RACE_CALLS)
        series = _series(context, is_late=is_late)
        checks = _run(context, series, times)
        if found := first_fault_of(checks, str(series)):
            raise _explained(context, series, checks, found)
        context.emit(Progress(phase=context.findings.phase, done=number + 1, total=2))
    return times


def first_fault_of(checks: Sequence[Sequence[Sequence[OutputCheck]]], where: str) -> Fault | None:
    """Return the gravest fault of a series, None where all of it is right."""
    every = [check for calls in checks for own in calls for check in own]
    is_right = all(check.verdict is Verdict.OK for check in every)
    return None if is_right else first_fault(every, where)


def _series(context: RunContext, *, is_late: bool) -> Series:
    ranks, slots = context.job.world_size, context.oracle.shuffled_batch()
    last = sorted(slots)[-race_series(len(slots), context.call_s) :]
    batch = tuple(slot for slot in slots if slot in last)
    turns = [(3 * at + at // ranks) % ranks for at in range(len(batch))]
    return Series(batch=batch, late=tuple(turn if is_late else None for turn in turns))


def _run(context: RunContext, series: Series, times: list[float]) -> list[list[list[OutputCheck]]]:
    """Make the calls of a series; return what was found by rank and call.

    Those that follow each other with nothing between are timed behind a gate.
    """
    is_plain = not series.is_spaced and series.late.count(None) == len(series.late)
    if is_plain and context.job.placement is Placement.FULL and context.job.device in GATED_DEVICES:
        us, checks = time_series(context, context.submission, series.batch)
        times.append(us)
        return checks
    oracle, side = context.oracle, context.submission
    oracle.clear("timed", side.side)
    side.arm()
    for control in side.controls:
        control.write_plan({"late": series.late, "late_s": LATE_S, "spaced": series.is_spaced})
    sequence = side.stage(Command.SERIES, series.batch)
    oracle.release(side.side, series.batch, sequence)
    try:
        side.wait()
    except Fault as fault:
        fault.message += f", in {series}"
        raise
    with side.paused():
        oracle.snapshot("timed", side.side, series.batch)
        return oracle.check_calls("timed", series.batch)


def _explained(
    context: RunContext,
    series: Series,
    checks: Sequence[Sequence[Sequence[OutputCheck]]],
    found: Fault,
) -> Fault:
    """Return the fault that it is: a race between calls where the same calls are right once ranks
    meet before each."""
    if found.verdict not in WRONG_VALUES:
        return found
    spaced = Series(batch=series.batch, late=series.late, is_spaced=True)
    try:
        again = _run(context, spaced, [])
    except Fault:
        return found
    if first_fault_of(again, str(spaced)):
        return found
    wrong = wrong_calls(checks)
    counts = ", ".join(f"rank {rank}: {count}" for rank, count in sorted(wrong.items()))
    return Fault(
        Verdict.OUTPUT_MISMATCH,
        "race_between_calls",
        f"{found.message}; right with barriers between the calls: a race between calls",
        ranks=sorted(wrong),
        evidence=f"wrong of {len(series.batch)} {series}: {counts}; with barriers between them: 0",
    )


def wrong_calls(checks: Sequence[Sequence[Sequence[OutputCheck]]]) -> Counter[int]:
    """Return how many calls of each rank are wrong, of those that have any."""
    wrong = Counter[int]()
    for calls in checks:
        for own in calls:
            bad = [check for check in own if check.verdict is not Verdict.OK]
            if bad:
                wrong[bad[0].rank] += 1
    return wrong
