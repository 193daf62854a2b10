"""Makes timed calls of a rank: queued behind the judge's gate, committed to when they are done.

It serves honest submissions only: the judge believes no more than that the commitment fits the
outputs, which it computes again from what it finds in the slab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from evaluator.buffers import cuda_memory, sealing
from evaluator.buffers.control_page import WORDS_BYTES
from evaluator.buffers.gpu_sealing import GpuSealing
from evaluator.buffers.memory import Memory
from evaluator.rank.calls import Slot
from evaluator.rank.control import RankControl


class Lane(Protocol):
    """Runs what surrounds the calls: on the GPU's current stream, or in this thread."""

    def begin(self, slots: Sequence[Slot]) -> None:
        """Wait for the gate, then make the inputs readable."""

    def end(self, slots: Sequence[Slot]) -> None:
        """Commit to the outputs and signal that the calls are done."""


def make_gated(
    lane: Lane, call: Callable[[Slot], None], slots: Sequence[Slot], control: RankControl
) -> None:
    """Make a call of each slot, one after the other, behind one gate."""
    lane.begin(slots)
    for slot in slots:
        call(slot)
    lane.end(slots)
    control.queued()


class GpuLane:
    """Queues kernels around the calls, so that a rank has launched all before the gate opens."""

    def __init__(self, control: RankControl, slab: Memory, ptx: str) -> None:
        page = cuda_memory.register(control.address, WORDS_BYTES)
        self._control = control
        self._kernels = GpuSealing(ptx, slab.device, slab=slab.address, page=page)

    def begin(self, slots: Sequence[Slot]) -> None:
        sealed = [r for slot in slots for r in slot.sealed]
        for ranges in (sealed, _committed(slots)):
            self._kernels.prepare(ranges)
        self._kernels.wait_for(self._control.sequence)
        self._kernels.open(sealed)

    def end(self, slots: Sequence[Slot]) -> None:
        self._kernels.commit(_committed(slots), self._control.sequence)


class HostLane:
    """Does the same in this thread. The judge's steps can be tried so without a GPU."""

    def __init__(self, control: RankControl, slab: Memory) -> None:
        self._control, self._slab, self._key = control, slab, 0

    def begin(self, slots: Sequence[Slot]) -> None:
        self._key = self._control.wait_at_gate()
        for slot in slots:
            sealing.unseal(self._slab.everything, slot.sealed, self._key)

    def end(self, slots: Sequence[Slot]) -> None:
        found = sealing.commitment(self._slab.everything, _committed(slots), self._key)
        self._control.commit(found)


def _committed(slots: Sequence[Slot]) -> sealing.Ranges:
    return [r for slot in slots for r in slot.committed]


def lane_of(control: RankControl, slab: Memory, plan: dict[str, Any]) -> Lane:
    """Return what runs around the calls of a plan."""
    ptx = plan["gate"]
    return GpuLane(control, slab, ptx) if ptx else HostLane(control, slab)
