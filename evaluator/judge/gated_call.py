"""Times one launch of calls: from the moment when their inputs can be read until every rank has
committed to its outputs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluator.buffers.control import are_done, open_gates
from evaluator.buffers.control_page import Command
from evaluator.messages.faults import Fault
from evaluator.messages.report import Verdict
from evaluator.sandbox.rank_group import RankGroup

if TYPE_CHECKING:
    from evaluator.oracle.group import OracleGroup

MOST_LOOKS = 1 << 21  # some 0.1 s

Keys = dict[int, int]  # of one rank, by slot


@dataclass(frozen=True, kw_only=True)
class GatedCall:
    """Holds what was found of one launch. `is_ahead` says that all ranks had queued all of it when
    the gate opened, at `opened_s` of the monotonic clock; `committed` is what each rank commits to.
    """

    slots: tuple[int, ...]
    us: float
    opened_s: float
    is_ahead: bool
    committed: tuple[int, ...]


def draw_keys(ranks: int, launches: Sequence[tuple[int, ...]]) -> list[Keys]:
    """Draw a key for each rank and launch: no two ranks' inputs may be sealed alike."""
    drawn = [[secrets.randbits(64) for _ in launches] for _ in range(ranks)]
    return [
        {slot: key for slots, key in zip(launches, own, strict=True) for slot in slots}
        for own in drawn
    ]


def launch(
    side: RankGroup,
    slots: tuple[int, ...],
    keys: Sequence[Keys],
    *,
    command: Command = Command.GATED,
    ahead_ms: float,
    at_gate: Callable[[], None] | None = None,
) -> GatedCall:
    """Time a launch over sealed inputs. Ranks have `ahead_ms` to queue it before its gate opens,
    and `at_gate` is called when it could; with 0 they begin once it is open.

    The clock starts before the first key is written, and runs until the commitments are read: a
    rank may write its own later than that it is done. Raises what RankGroup.wait raises.
    """
    sequence = side.stage(command, slots)
    if ahead_ms:
        side.release(sequence)
    is_ahead = bool(ahead_ms) and _are_queued(side, ahead_ms)
    if at_gate is not None:
        at_gate()
    own_keys = [own[slots[0]] for own in keys]
    began_ns = time.monotonic_ns()
    open_gates(side.controls, own_keys)
    if not ahead_ms:
        side.release(sequence)
    if not are_done(side.controls, MOST_LOOKS):
        side.wait()
    committed = tuple([control.commitment for control in side.controls])
    us = (time.monotonic_ns() - began_ns) / 1e3
    opened_s = began_ns / 1e9
    return GatedCall(slots=slots, us=us, opened_s=opened_s, is_ahead=is_ahead, committed=committed)


def settle(side: RankGroup, slot: int) -> None:
    """Make an empty call that nobody times: after a pause a GPU's first kernels take longer. It
    leaves the slot's inputs unreadable."""
    launch(
        side, (slot,), [{slot: 0} for _ in side.controls], command=Command.GATED_EMPTY, ahead_ms=0
    )


def check_commitments(
    side: RankGroup, oracle: OracleGroup, launches: Sequence[GatedCall], keys: Sequence[Keys]
) -> None:
    """Raise Fault for a rank whose outputs are not those that it committed to."""
    asked = [[(own.slots, rank_keys[own.slots[0]]) for own in launches] for rank_keys in keys]
    for rank, found in enumerate(oracle.commitments("timed", asked)):
        if found != [own.committed[rank] for own in launches]:
            message = f"rank {rank} said it was done before its GPU had written every output"
            raise Fault(Verdict.LATE_OUTPUT, "unwritten", message, ranks=[rank])


def _are_queued(side: RankGroup, within_ms: float) -> bool:
    """Wait until all ranks have queued their calls, but not longer: one that waits for a value on
    the host cannot before its inputs are there."""
    until = time.perf_counter() + within_ms / 1e3
    while not all(control.is_queued for control in side.controls):
        if time.perf_counter() > until:
            return False
    return True
