"""Sees that nothing leaves a GPU while the inputs of a call are sealed.

Sealed inputs are noise to whoever lacks the key, but noise can be sent ahead: then only keys are
left to send once the clock runs. So the judge watches some calls, drawn in secret, instead of
timing them: at the moment when their gate could open it asks the driver what has left each GPU
since before the inputs were there. Until that moment nothing tells a watched call from a timed one.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence

from evaluator.host.gpus import Gpu
from evaluator.host.links import Count, Sent, counters, sent_since
from evaluator.messages.faults import Fault
from evaluator.messages.report import Verdict
from evaluator.timing.pace import WATCHED_OF

MOST_NVLINK_BYTES = 4 << 10  # an honest call has sent none by then
# Over PCIe gates ask host memory whether they may open, the driver answers what it is asked, and a
# GPU asks for each part of its inputs: 9.4 % of their bytes.
MOST_PCIE_BYTES, PCIE_BYTES_PER_S, PCIE_SHARE = 384 << 10, 24 << 20, 0.105
PCIE_CALLS = 3  # A driver has work of its own, now and then: so many calls must send too much.
MOST_WAIT_S = 0.06  # from the inputs to the gate: else a call is not timed, and shows nothing


class Watch:
    """Watches a side's calls by what counts the bytes that leave its GPUs. It has watched so many
    `calls`; where one `is_due`, it watches the next."""

    def __init__(self, count: Count) -> None:
        self.calls, self.is_due = 0, False
        self._over_pcie = 0
        self._count, self._before = count, list[Sent]()
        self._began_s = self._put_s = 0.0
        self._received: Sequence[int] = ()

    def begin(self) -> bool:
        """Note what has been sent before inputs are there; return True if the call is watched."""
        self._began_s, self._before = time.monotonic(), self._count()
        return bool(self._before) and (self.is_due or secrets.randbelow(WATCHED_OF) == 0)

    def put(self, received: Sequence[int]) -> None:
        """Note that inputs are there, of so many bytes on each GPU."""
        self._received, self._put_s = received, time.monotonic()

    def is_prompt(self, opened_s: float) -> bool:
        """Return True if the gate opened, or could, within MOST_WAIT_S; by the monotonic clock."""
        return not self._before or opened_s - self._put_s <= MOST_WAIT_S

    def check(self) -> None:
        """Raise Fault for a GPU that has sent more than an honest call can have: over PCIe, once
        PCIE_CALLS have."""
        now_s = time.monotonic()
        self.calls += self.is_prompt(now_s)
        idle_bytes = MOST_PCIE_BYTES + PCIE_BYTES_PER_S * (now_s - self._began_s)
        sent = list(map(sent_since, self._before, self._count()))
        for rank, own in enumerate(sent):
            if own["NVLink"] > MOST_NVLINK_BYTES:
                raise _sent_early(rank, "NVLink", own)
        over = [
            rank
            for rank, own in enumerate(sent)
            if own["PCIe"] > idle_bytes + PCIE_SHARE * self._received[rank]
        ]
        self._over_pcie += bool(over)
        if over and self._over_pcie == PCIE_CALLS:
            raise _sent_early(over[0], "PCIe", sent[over[0]])


def _sent_early(rank: int, way: str, sent: Sent) -> Fault:
    message = f"the GPU of rank {rank} sent {sent[way] >> 10} KiB over {way} before its inputs"
    message += " could be read"
    return Fault(Verdict.PROTOCOL_VIOLATION, "sent_early", message, ranks=[rank])


@contextlib.contextmanager
def watching(gpus: Sequence[Gpu]) -> Iterator[Watch]:
    """Yield what watches calls on these GPUs."""
    with counters(gpus) as count:
        yield Watch(count)
